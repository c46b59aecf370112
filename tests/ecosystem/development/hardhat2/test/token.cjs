// Fifty tests of a token, as a Hardhat project has them, all with the same fixture: hardhat test --no-compile.
const assert = require("node:assert/strict");
const { join } = require("node:path");
const { ethers } = require("ethers");
const { network } = require("hardhat");
const { loadFixture, mine, time } = require("@nomicfoundation/hardhat-network-helpers");

const TOKEN = require(join(__dirname, "../../../../../fastevm/payments/contracts/artifacts/Token.json"));
const provider = new ethers.BrowserProvider(network.provider, undefined, { cacheTimeout: -1, pollingInterval: 10 });

async function deployed() {
  const [owner, alice, bob] = await Promise.all([0, 1, 2].map((index) => provider.getSigner(index)));
  const factory = new ethers.ContractFactory(TOKEN.abi, TOKEN.bytecode, owner);
  const token = await factory.deploy("Dollar", "USD", 6, owner.address);
  await (await token.mint(owner.address, 1_000_000n)).wait();
  return { token, owner, alice, bob };
}

const refused = (sent, reason) => assert.rejects(sent, (error) => {
  assert.match(JSON.stringify(error, (_, one) => (typeof one === "bigint" ? `${one}` : one)) + error.message, reason);
  return true;
});
const done = async (sent) => (await sent).wait();

describe("Token", () => {
  for (const amount of [1n, 10n, 100n, 1_000n, 10_000n, 100_000n, 999_999n, 1_000_000n])
    it(`transfers ${amount}`, async () => {
      const { token, alice } = await loadFixture(deployed);
      await done(token.transfer(alice.address, amount));
      assert.equal(await token.balanceOf(alice.address), amount);
    });
  for (const excess of [1n, 2n, 1_000n, 10n ** 30n])
    it(`refuses ${excess} more than there is`, async () => {
      const { token, alice } = await loadFixture(deployed);
      await refused(token.transfer(alice.address, 1_000_000n + excess), /exceeds balance/);
    });
  for (const amount of [0n, 1n, 500n, 10n ** 18n])
    it(`approves ${amount}`, async () => {
      const { token, owner, bob } = await loadFixture(deployed);
      await done(token.approve(bob.address, amount));
      assert.equal(await token.allowance(owner.address, bob.address), amount);
    });
  for (const amount of [1n, 50n, 499n, 500n])
    it(`lets a spender take ${amount}`, async () => {
      const { token, owner, alice, bob } = await loadFixture(deployed);
      await done(token.approve(bob.address, 500n));
      await done(token.connect(bob).transferFrom(owner.address, alice.address, amount));
      assert.equal(await token.allowance(owner.address, bob.address), 500n - amount);
    });
  for (const amount of [501n, 502n, 10_000n])
    it(`refuses a spender ${amount}`, async () => {
      const { token, owner, alice, bob } = await loadFixture(deployed);
      await done(token.approve(bob.address, 500n));
      await refused(token.connect(bob).transferFrom(owner.address, alice.address, amount), /exceeds allowance/);
    });
  for (const amount of [1n, 7n, 10n ** 12n])
    it(`mints ${amount}`, async () => {
      const { token, bob } = await loadFixture(deployed);
      const { logs } = await done(token.mint(bob.address, amount));
      assert.deepEqual([logs.length, await token.totalSupply()], [1, 1_000_000n + amount]);
    });
  for (const index of [1, 2, 3, 4])
    it(`lets account ${index} mint nothing`, async () => {
      const { token } = await loadFixture(deployed);
      const signer = await provider.getSigner(index);
      await refused(token.connect(signer).mint(signer.address, 1n), /not a minter/);
    });
  for (const index of [1, 2, 3, 4])
    it(`blocks account ${index}`, async () => {
      const { token } = await loadFixture(deployed);
      const signer = await provider.getSigner(index);
      await done(token.blacklist(signer.address));
      assert.equal(await token.isBlacklisted(signer.address), true);
      await refused(token.transfer(signer.address, 1n), /blacklisted/);
    });
  for (const count of [1, 2, 3])
    it(`emits ${count} events`, async () => {
      const { token, alice } = await loadFixture(deployed);
      const from = await provider.getBlockNumber();
      for (let sent = 0; sent < count; sent += 1) await done(token.transfer(alice.address, 1n));
      assert.equal((await token.queryFilter("Transfer", from + 1)).length, count);
    });
  it("pauses", async () => {
    const { token, alice } = await loadFixture(deployed);
    await done(token.pause());
    await refused(token.transfer(alice.address, 1n), /paused/);
  });
  it("goes on", async () => {
    const { token, alice } = await loadFixture(deployed);
    await done(token.pause());
    await done(token.unpause());
    await done(token.transfer(alice.address, 1n));
  });
  for (const days of [1, 7, 30, 365])
    it(`refuses a permit after ${days} days`, async () => {
      const { token, owner, bob } = await loadFixture(deployed);
      const deadline = await time.latest();
      await time.increase(days * 86_400);
      const permit = token["permit(address,address,uint256,uint256,bytes)"];
      await refused(permit(owner.address, bob.address, 1n, deadline, "0x"), /expired/);
    });
  for (const blocks of [1, 10, 100, 256, 1_000])
    it(`reads its past over ${blocks} blocks`, async () => {
      const { token, owner, alice } = await loadFixture(deployed);
      const before = await provider.getBlockNumber();
      await done(token.transfer(alice.address, 1n));
      await mine(blocks);
      assert.equal(await token.balanceOf(owner.address, { blockTag: before }), 1_000_000n);
    });
  for (const nonce of [1, 2])
    it(`cancels authorization ${nonce} only once`, async () => {
      const { token, owner } = await loadFixture(deployed);
      const word = ethers.toBeHex(nonce, 32);
      assert.equal(await token.authorizationState(owner.address, word), false);
      const cancel = token["cancelAuthorization(address,bytes32,bytes)"];
      await refused(cancel(owner.address, word, "0x"), /signature/);
    });
});
