// Every action of viem's test client: node with_viem_test.mjs URL KEY MODE [UPSTREAM].
import assert from "node:assert/strict";
import { createTestClient, http, parseEther, publicActions, toHex, walletActions } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { foundry } from "viem/chains";
import { INITCODE, NOBODY, main, privateKey, program, url } from "./common.mjs";

const [mode, upstream] = process.argv.slice(4);
const owner = privateKeyToAccount(privateKey).address;
const STRANGER = "0x00000000000000000000000000000000000000c1";
const SLOT = `0x${"00".repeat(31)}01`;
const pay = { account: owner, to: NOBODY, value: 1n };
const client = createTestClient({ mode, chain: foundry, transport: http(url), pollingInterval: 20 })
  .extend(publicActions)
  .extend(walletActions);
const latest = () => client.getBlock();
const receipt = (hash) => client.waitForTransactionReceipt({ hash, timeout: 300_000 });
const onDemand = async (run) => {
  await client.setAutomine(false);
  try {
    return await run();
  } finally {
    await client.setAutomine(true);
  }
};

program("getAutomine", async () => assert.equal(await client.getAutomine(), true));
program("setAutomine", () =>
  onDemand(async () => {
    assert.equal(await client.getAutomine(), false);
    const before = await client.getBlockNumber({ cacheTime: 0 });
    await client.sendTransaction(pay);
    assert.equal(await client.getBlockNumber({ cacheTime: 0 }), before);
    await client.mine({ blocks: 1 });
    assert.equal(await client.getBlockNumber({ cacheTime: 0 }), before + 1n);
  }),
);
program("mine", async () => {
  const before = await latest();
  await client.mine({ blocks: 3 });
  assert.equal((await latest()).number, before.number + 3n);
});
program("mine with an interval", async () => {
  await client.mine({ blocks: 2, interval: 60 });
  const last = await latest();
  const first = await client.getBlock({ blockNumber: last.number - 1n });
  assert.equal(last.timestamp - first.timestamp, 60n);
});
program("setBalance", async () => {
  await client.setBalance({ address: STRANGER, value: parseEther("2") });
  assert.equal(await client.getBalance({ address: STRANGER }), parseEther("2"));
});
program("setNonce", async () => {
  await client.setNonce({ address: STRANGER, nonce: 420 });
  assert.equal(await client.getTransactionCount({ address: STRANGER }), 420);
});
program("setCode", async () => {
  await client.setCode({ address: STRANGER, bytecode: "0x6001" });
  assert.equal(await client.getCode({ address: STRANGER }), "0x6001");
  await client.setCode({ address: STRANGER, bytecode: "0x" });
});
program("setStorageAt", async () => {
  const value = `0x${"11".repeat(32)}`;
  for (const index of [1, SLOT]) {
    await client.setStorageAt({ address: STRANGER, index, value });
    assert.equal(await client.getStorageAt({ address: STRANGER, slot: SLOT }), value);
  }
});
program("impersonateAccount", async () => {
  await client.setBalance({ address: STRANGER, value: parseEther("2") });
  await assert.rejects(client.sendTransaction({ ...pay, account: STRANGER }));
  await client.impersonateAccount({ address: STRANGER });
  const hash = await client.sendTransaction({ ...pay, account: STRANGER });
  assert.equal((await client.getTransaction({ hash })).from, STRANGER);
  assert.equal((await receipt(hash)).status, "success");
});
program("stopImpersonatingAccount", async () => {
  await client.impersonateAccount({ address: STRANGER });
  await client.stopImpersonatingAccount({ address: STRANGER });
  await assert.rejects(client.sendTransaction({ ...pay, account: STRANGER }), /No Signer available/);
});
program("fees of both kinds", async () => {
  // Clients pass the result of eth_fillTransaction, which has both kinds of fees, to eth_estimateGas.
  const gasPrice = await client.getGasPrice();
  const both = { from: owner, to: NOBODY, gasPrice: toHex(2n * gasPrice), maxFeePerGas: toHex(3n * gasPrice) };
  const method = "eth_estimateGas";
  assert.equal(await client.request({ method, params: [both] }), "0x5208");
  const hash = await client.request({ method: "eth_sendTransaction", params: [both] });
  const transaction = await client.getTransaction({ hash });
  assert.deepEqual([transaction.type, transaction.gasPrice], ["legacy", 2n * gasPrice]);
});
program("sendUnsignedTransaction", async () => {
  const gasPrice = (await client.getGasPrice()) * 2n;
  const request = { from: STRANGER, to: NOBODY, value: 1n, gas: 21_000n, gasPrice };
  const hash = await client.sendUnsignedTransaction(request);
  assert.equal((await client.getTransaction({ hash })).from, STRANGER);
});
program("snapshot", async () => assert.match(await client.snapshot(), /^0x[0-9a-f]+$/));
program("revert", async () => {
  const before = [await client.getBalance({ address: NOBODY }), (await latest()).number];
  const id = await client.snapshot();
  await receipt(await client.sendTransaction(pay));
  await client.revert({ id });
  assert.deepEqual([await client.getBalance({ address: NOBODY }), (await latest()).number], before);
});
program("increaseTime", async () => {
  const before = await latest();
  await client.increaseTime({ seconds: 3600 });
  await client.mine({ blocks: 1 });
  const passed = (await latest()).timestamp - before.timestamp;
  assert(passed >= 3600n && passed < 3700n, `${passed}`);
});
program("setNextBlockTimestamp", async () => {
  const timestamp = (await latest()).timestamp + 86_400n;
  await client.setNextBlockTimestamp({ timestamp });
  await client.mine({ blocks: 1 });
  assert.equal((await latest()).timestamp, timestamp);
});
program("setBlockTimestampInterval", async () => {
  const before = await latest();
  await client.setBlockTimestampInterval({ interval: 77 });
  await client.mine({ blocks: 1 });
  assert.equal((await latest()).timestamp, before.timestamp + 77n);
  await receipt(await client.sendTransaction(pay));
  assert.equal((await latest()).timestamp, before.timestamp + 154n);
});
program("removeBlockTimestampInterval", async () => {
  await client.setBlockTimestampInterval({ interval: 77 });
  const before = await latest();
  await client.removeBlockTimestampInterval();
  await client.mine({ blocks: 1 });
  assert((await latest()).timestamp - before.timestamp < 60n);
});
program("setNextBlockBaseFeePerGas", async () => {
  await client.setNextBlockBaseFeePerGas({ baseFeePerGas: 7_000_000_000n });
  await client.mine({ blocks: 1 });
  assert.equal((await latest()).baseFeePerGas, 7_000_000_000n);
});
program("setMinGasPrice", async () => {
  // Nodes with a base fee reject this method, with the same error text as anvil.
  await assert.rejects(client.setMinGasPrice({ gasPrice: 420n }), /anvil_setMinGasPrice is not supported when EIP-1559 is active/);
});
program("setCoinbase", async () => {
  await client.setCoinbase({ address: STRANGER });
  await client.mine({ blocks: 1 });
  assert.equal((await latest()).miner, STRANGER);
});
program("setBlockGasLimit", async () => {
  await client.setBlockGasLimit({ gasLimit: 29_000_001n });
  await client.mine({ blocks: 1 });
  assert.equal((await latest()).gasLimit, 29_000_001n);
});
program("setIntervalMining", async () => {
  const before = (await latest()).number;
  await client.setIntervalMining({ interval: 1 });
  const start = Date.now();
  const late = mode === "hardhat" ? 900 : 5_000; // anvil takes hardhat's milliseconds for seconds
  while ((await latest()).number === before && Date.now() - start < late)
    await new Promise((resolve) => setTimeout(resolve, 50));
  await client.setIntervalMining({ interval: 0 });
  await client.setAutomine(true);
  assert((await latest()).number > before || mode === "hardhat");
});
program("setLoggingEnabled", async () => {
  await client.setLoggingEnabled(false);
  await client.setLoggingEnabled(true);
});
program("getTxpoolStatus", () =>
  onDemand(async () => {
    await client.sendTransaction(pay);
    assert.deepEqual(await client.getTxpoolStatus(), { pending: 1, queued: 0 });
    await client.mine({ blocks: 1 });
    assert.deepEqual(await client.getTxpoolStatus(), { pending: 0, queued: 0 });
  }),
);
program("getTxpoolContent", () =>
  onDemand(async () => {
    const hash = await client.sendTransaction(pay);
    const { pending } = await client.getTxpoolContent();
    assert.equal(Object.values(pending[owner.toLowerCase()])[0].hash, hash);
    await client.mine({ blocks: 1 });
  }),
);
program("inspectTxpool", () =>
  onDemand(async () => {
    await client.sendTransaction(pay);
    const { pending } = await client.inspectTxpool();
    assert.match(Object.values(pending[owner.toLowerCase()])[0], /1 wei/);
    await client.mine({ blocks: 1 });
  }),
);
program("dropTransaction", () =>
  onDemand(async () => {
    const hash = await client.sendTransaction(pay);
    await client.dropTransaction({ hash });
    assert.deepEqual(await client.getTxpoolStatus(), { pending: 0, queued: 0 });
    await assert.rejects(client.getTransaction({ hash }));
  }),
);
program("dumpState", async () => assert.match(await client.dumpState(), /^0x[0-9a-f]{20,}$/));
program("loadState", async () => {
  const hash = await client.sendTransaction({ account: owner, data: INITCODE });
  const { contractAddress } = await receipt(hash);
  const state = await client.dumpState();
  const code = await client.getCode({ address: contractAddress });
  await client.setCode({ address: contractAddress, bytecode: "0x" });
  await client.loadState({ state });
  assert.equal(await client.getCode({ address: contractAddress }), code);
});
program("setRpcUrl", async () => {
  await client.setRpcUrl(upstream ?? url);
});
program("reset", async () => {
  await receipt(await client.sendTransaction(pay));
  await client.reset(upstream ? { jsonRpcUrl: upstream, blockNumber: 1n } : undefined);
  assert.equal((await latest()).number, upstream ? 1n : 0n);
});
await main();
