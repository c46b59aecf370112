// Tests what test suites do with ethers 6 on a development node: node ethers_dev.mjs URL KEY.
import assert from "node:assert/strict";
import { ethers } from "ethers";
import { NOBODY, main, privateKey, program, socketUrl, url, within } from "../../../clients/javascript/common.mjs";
import { TOKEN, terms } from "./token.mjs";

const provider = new ethers.JsonRpcProvider(url, undefined, { cacheTimeout: -1, pollingInterval: 50 });
const wallet = new ethers.Wallet(privateKey, provider);
const signer = await provider.getSigner(1);
const admin = wallet.address;
let token;

program("network", async () => assert.equal((await provider.getNetwork()).chainId, 31337n));
program("accounts", async () => assert.equal((await provider.listAccounts()).length, 10));
program("a signer of the node pays", async () => {
  const receipt = await (await signer.sendTransaction({ to: NOBODY, value: 5n })).wait();
  assert.equal(receipt.status, 1);
  assert.equal(receipt.from, await signer.getAddress());
});
program("pay and read at once", async () => {
  const before = await provider.getBalance(NOBODY);
  await (await wallet.sendTransaction({ to: NOBODY, value: 5n })).wait();
  assert.equal(await provider.getBalance(NOBODY), before + 5n);
});
program("deploy", async () => {
  const factory = new ethers.ContractFactory(TOKEN.abi, TOKEN.bytecode, wallet);
  token = await factory.deploy(...terms(admin));
  await token.waitForDeployment();
  assert.equal(await token.name(), "Dollar");
});
program("an address known before", async () => {
  const nonce = await wallet.getNonce();
  const factory = new ethers.ContractFactory(TOKEN.abi, TOKEN.bytecode, wallet);
  const other = await factory.deploy(...terms(admin));
  assert.equal(await other.getAddress(), ethers.getCreateAddress({ from: admin, nonce }));
});
program("events of a receipt", async () => {
  const receipt = await (await token.mint(admin, 1_000n)).wait();
  const [log] = receipt.logs;
  assert.deepEqual([log.fragment.name, log.args[2]], ["Transfer", 1_000n]);
});
program("queryFilter", async () => {
  await (await token.transfer(NOBODY, 5n)).wait();
  const logs = await token.queryFilter(token.filters.Transfer(admin), 0);
  assert.equal(logs.at(-1).args[1].toLowerCase(), NOBODY);
});
program("an event listener", async () => {
  const seen = within((resolve) => token.once("Transfer", (from, to, value) => resolve(value)));
  await (await token.transfer(NOBODY, 6n)).wait();
  assert.equal(await seen, 6n);
});
program("staticCall refused in words", async () => {
  await assert.rejects(token.connect(signer).transfer.staticCall(NOBODY, 5n), {
    code: "CALL_EXCEPTION", reason: "ERC20: transfer amount exceeds balance",
  });
});
program("estimate refused in words", async () => {
  await assert.rejects(token.connect(signer).mint(NOBODY, 5n), {
    code: "CALL_EXCEPTION", reason: "FiatToken: caller is not a minter",
  });
});
program("a failure in a block", async () => {
  const sent = await token.connect(signer).mint(NOBODY, 5n, { gasLimit: 200_000n });
  await assert.rejects(sent.wait(), { code: "CALL_EXCEPTION" });
});
program("too poor", async () => {
  const poor = ethers.Wallet.createRandom(provider);
  await assert.rejects(poor.sendTransaction({ to: NOBODY, value: 1n }), { code: "INSUFFICIENT_FUNDS" });
});
program("a nonce again", async () => {
  await assert.rejects(wallet.sendTransaction({ to: NOBODY, nonce: 0 }), { code: "NONCE_EXPIRED" });
});
program("permit over typed data", async () => {
  const domain = { name: "Dollar", version: await token.version(), chainId: 31337n };
  domain.verifyingContract = await token.getAddress();
  const fields = ["owner:address", "spender:address", "value:uint256", "nonce:uint256", "deadline:uint256"];
  const types = { Permit: fields.map((one) => ({ name: one.split(":")[0], type: one.split(":")[1] })) };
  const owner = await signer.getAddress();
  const value = { owner, spender: NOBODY, value: 9n, nonce: 0n, deadline: ethers.MaxUint256 };
  const { v, r, s } = ethers.Signature.from(await signer.signTypedData(domain, types, value));
  const permit = token["permit(address,address,uint256,uint256,uint8,bytes32,bytes32)"];
  await (await permit(owner, NOBODY, 9n, ethers.MaxUint256, v, r, s)).wait();
  assert.equal(await token.allowance(owner, NOBODY), 9n);
});
program("sign a message", async () => {
  assert.equal(ethers.verifyMessage("hello", await signer.signMessage("hello")), await signer.getAddress());
});
program("an impersonated signer", async () => {
  await provider.send("anvil_impersonateAccount", [NOBODY]);
  await provider.send("anvil_setBalance", [NOBODY, "0xde0b6b3a7640000"]);
  const nobody = await provider.getSigner(NOBODY);
  assert.equal((await (await token.connect(nobody).transfer(admin, 1n)).wait()).status, 1);
  await provider.send("anvil_stopImpersonatingAccount", [NOBODY]);
});
program("hardhat's names of that", async () => {
  await provider.send("hardhat_impersonateAccount", [NOBODY]);
  await provider.send("hardhat_setBalance", [NOBODY, "0xde0b6b3a7640000"]);
  const nobody = new ethers.JsonRpcSigner(provider, NOBODY); // getSigner wants it in eth_accounts
  assert.equal((await (await nobody.sendTransaction({ to: admin, value: 1n })).wait()).status, 1);
});
program("snapshot and revert", async () => {
  const mark = await provider.send("evm_snapshot", []);
  const before = await token.totalSupply();
  await (await token.mint(admin, 5n)).wait();
  assert.equal(await provider.send("evm_revert", [mark]), true);
  assert.equal(await token.totalSupply(), before);
});
program("time travel", async () => {
  const { timestamp } = await provider.getBlock("latest");
  await provider.send("evm_increaseTime", [86_400]);
  await provider.send("evm_mine", []);
  assert((await provider.getBlock("latest")).timestamp >= timestamp + 86_400);
});
program("a chosen time", async () => {
  const aim = (await provider.getBlock("latest")).timestamp + 1_000;
  await provider.send("evm_setNextBlockTimestamp", [aim]);
  const { blockNumber } = await (await wallet.sendTransaction({ to: NOBODY })).wait();
  assert.equal((await provider.getBlock(blockNumber)).timestamp, aim);
});
program("many blocks", async () => {
  const before = await provider.getBlockNumber();
  await provider.send("anvil_mine", ["0x64"]);
  assert.equal(await provider.getBlockNumber(), before + 100);
});
program("no mining for a while", async () => {
  await provider.send("evm_setAutomine", [false]);
  const sent = [await signer.sendTransaction({ to: NOBODY }), await signer.sendTransaction({ to: NOBODY })];
  assert.equal(await provider.getTransactionReceipt(sent[0].hash), null);
  await provider.send("evm_mine", []);
  await provider.send("evm_setAutomine", [true]);
  const [first, second] = await Promise.all(sent.map((one) => one.wait()));
  assert.equal(first.blockNumber, second.blockNumber);
});
program("replace a waiting transaction", async () => {
  await provider.send("evm_setAutomine", [false]);
  const nonce = await wallet.getNonce();
  const fees = { maxFeePerGas: 10n ** 10n, maxPriorityFeePerGas: 10n ** 9n, gasLimit: 21_000n, nonce };
  const first = await wallet.sendTransaction({ to: NOBODY, value: 1n, ...fees });
  fees.maxFeePerGas *= 2n;
  fees.maxPriorityFeePerGas *= 2n;
  const second = await wallet.sendTransaction({ to: NOBODY, value: 2n, ...fees });
  await provider.send("evm_mine", []);
  await provider.send("evm_setAutomine", [true]);
  assert.equal((await second.wait()).status, 1);
  await assert.rejects(first.wait(), { code: "TRANSACTION_REPLACED" });
});
program("fee data", async () => {
  const { gasPrice, maxFeePerGas, maxPriorityFeePerGas } = await provider.getFeeData();
  assert(gasPrice > 0n && maxFeePerGas >= maxPriorityFeePerGas);
});
program("transactions of each kind", async () => {
  for (const type of [0, 1, 2]) {
    const receipt = await (await wallet.sendTransaction({ to: NOBODY, type })).wait();
    assert.equal(receipt.type, type);
  }
});
program("a delegation", async () => {
  const fresh = ethers.Wallet.createRandom(provider);
  const authorization = await fresh.authorize({ address: NOBODY, nonce: 0, chainId: 31337 });
  const sent = await wallet.sendTransaction({ to: NOBODY, type: 4, authorizationList: [authorization] });
  assert.equal((await sent.wait()).status, 1);
  assert.equal(await provider.getCode(fresh.address), `0xef0100${NOBODY.slice(2)}`);
});
program("storage and code", async () => {
  const address = await token.getAddress();
  assert.equal(await provider.getCode(address), TOKEN.deployedBytecode);
  assert.equal((await provider.getStorage(address, 0)).length, 66);
});
program("a block with its transactions", async () => {
  const { blockNumber, hash } = await (await wallet.sendTransaction({ to: NOBODY })).wait();
  const block = await provider.getBlock(blockNumber, true);
  assert.equal(block.prefetchedTransactions[0].hash, hash);
});
program("two confirmations", async () => {
  const sent = await wallet.sendTransaction({ to: NOBODY });
  await provider.send("evm_mine", []);
  assert((await (await sent.wait(2)).confirmations()) >= 2);
});
program("a batch of twenty reads", async () => {
  const found = await Promise.all(Array.from({ length: 20 }, () => token.balanceOf(admin)));
  assert.equal(new Set(found).size, 1);
});
program("blocks over a socket", async () => {
  const socket = new ethers.WebSocketProvider(socketUrl);
  await socket._waitUntilReady();
  const seen = within((resolve) => socket.once("block", resolve));
  setTimeout(() => provider.send("evm_mine", []), 300);
  assert((await seen) > 0);
});
program("a past block", async () => {
  const before = await provider.getBlockNumber();
  const supply = await token.totalSupply();
  await (await token.mint(admin, 5n)).wait();
  assert.equal(await token.totalSupply({ blockTag: before }), supply);
});
program("a creation by call", async () => {
  const data = await new ethers.ContractFactory(TOKEN.abi, TOKEN.bytecode).getDeployTransaction(...terms(admin));
  assert.equal(await provider.call(data), TOKEN.deployedBytecode);
});
program("logs over all blocks", async () => {
  const logs = await provider.getLogs({ fromBlock: 0, topics: [ethers.id("Transfer(address,address,uint256)")] });
  assert(logs.length >= 4);
});
await main();
