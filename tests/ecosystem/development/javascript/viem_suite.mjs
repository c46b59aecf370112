// A hundred tests as a viem project has them, each between a snapshot and a revert to it:
// node --test viem_suite.mjs. NODE_URL names the node.
import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { createTestClient, getContract, http, publicActions, walletActions } from "viem";
import { foundry } from "viem/chains";
import { TOKEN, terms } from "./token.mjs";

const client = createTestClient({ mode: "anvil", chain: foundry, transport: http(process.env.NODE_URL), pollingInterval: 10 })
  .extend(publicActions)
  .extend(walletActions);
const counted = (count) => Array.from({ length: count }, (_, index) => index + 1);
const done = async (sent) => client.waitForTransactionReceipt({ hash: await sent, pollingInterval: 10 });
let accounts, owner, token, mark;

before(async () => {
  accounts = await client.getAddresses();
  [owner] = accounts;
  const { contractAddress } = await done(
    client.deployContract({ abi: TOKEN.abi, bytecode: TOKEN.bytecode, args: terms(owner), account: owner }),
  );
  token = getContract({ abi: TOKEN.abi, address: contractAddress, client });
  await done(token.write.mint([owner, 1_000_000n], { account: owner }));
});
beforeEach(async () => {
  mark = await client.snapshot();
});
afterEach(() => client.revert({ id: mark }));
after(() => setTimeout(() => process.exit(), 100).unref());

for (const amount of counted(25))
  test(`transfer ${amount}`, async () => {
    await done(token.write.transfer([accounts[1], BigInt(amount)], { account: owner }));
    assert.equal(await token.read.balanceOf([accounts[1]]), BigInt(amount));
  });
for (const amount of counted(15))
  test(`refused transfer ${amount}`, () =>
    assert.rejects(token.simulate.transfer([owner, BigInt(amount)], { account: accounts[2] }), /exceeds balance/));
for (const amount of counted(10))
  test(`allowance ${amount}`, async () => {
    await done(token.write.approve([accounts[3], BigInt(amount)], { account: owner }));
    await done(token.write.transferFrom([owner, accounts[4], BigInt(amount)], { account: accounts[3] }));
    assert.equal(await token.read.balanceOf([accounts[4]]), BigInt(amount));
  });
for (const count of counted(10))
  test(`${count} events`, async () => {
    const fromBlock = (await client.getBlockNumber({ cacheTime: 0 })) + 1n;
    for (const _ of counted(count)) await done(token.write.transfer([accounts[1], 1n], { account: owner }));
    assert.equal((await token.getEvents.Transfer({}, { fromBlock })).length, count);
  });
for (const blocks of counted(10))
  test(`mine ${blocks * 10}`, async () => {
    const number = await client.getBlockNumber({ cacheTime: 0 });
    await client.mine({ blocks: blocks * 10 });
    assert.equal(await client.getBlockNumber({ cacheTime: 0 }), number + BigInt(blocks * 10));
  });
for (const days of counted(10))
  test(`${days} days later`, async () => {
    const { timestamp } = await client.getBlock();
    await client.increaseTime({ seconds: days * 86_400 });
    await client.mine({ blocks: 1 });
    assert((await client.getBlock()).timestamp >= timestamp + BigInt(days * 86_400));
  });
for (const index of counted(10))
  test(`impersonation ${index}`, async () => {
    const address = `0x${(0xc000 + index).toString(16).padStart(40, "0")}`;
    await client.setBalance({ address, value: 10n ** 18n });
    await client.impersonateAccount({ address });
    await done(client.sendTransaction({ account: address, to: owner, value: 1n }));
    await client.stopImpersonatingAccount({ address });
  });
for (const index of counted(10))
  test(`multicall ${index}`, async () => {
    const contracts = accounts.slice(0, index).map((one) => ({
      address: token.address, abi: TOKEN.abi, functionName: "balanceOf", args: [one],
    }));
    const found = await Promise.all(contracts.map((one) => client.readContract(one)));
    assert.equal(found[0], 1_000_000n);
  });
