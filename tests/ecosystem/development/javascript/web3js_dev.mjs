// Tests what test suites do with web3.js 4 on a development node: node web3js_dev.mjs URL KEY.
import assert from "node:assert/strict";
import { Web3 } from "web3";
import { NOBODY, main, privateKey, program, socketUrl, url, within } from "../../../clients/javascript/common.mjs";
import { TOKEN, terms } from "./token.mjs";

const web3 = new Web3(url);
const { eth } = web3;
eth.transactionPollingInterval = 50;
const owner = web3.eth.accounts.wallet.add(privateKey)[0].address;
const accounts = await eth.getAccounts();
const ask = (method, ...params) => web3.requestManager.send({ method, params });
let token;

program("chain id", async () => assert.equal(await eth.getChainId(), 31337n));
program("client version", async () => assert(await eth.getNodeInfo()));
program("network id", async () => assert.equal(await eth.net.getId(), 31337n));
program("pay by a local key", async () => {
  const receipt = await eth.sendTransaction({ from: owner, to: NOBODY, value: 1 });
  assert.equal(receipt.status, 1n);
});
program("pay by an account of the node", async () => {
  const before = await eth.getBalance(NOBODY);
  await eth.sendTransaction({ from: accounts[3], to: NOBODY, value: 7 });
  assert.equal(await eth.getBalance(NOBODY), before + 7n);
});
program("deploy", async () => {
  const contract = new eth.Contract(TOKEN.abi);
  token = await contract.deploy({ data: TOKEN.bytecode, arguments: terms(owner) }).send({ from: owner });
  assert.equal(await token.methods.symbol().call(), "USD");
});
program("send to a contract", async () => {
  const receipt = await token.methods.mint(owner, 100).send({ from: owner });
  assert.equal(receipt.events.Transfer.returnValues.value, 100n);
});
program("past events", async () => {
  const found = await token.getPastEvents("Transfer", { fromBlock: 0 });
  assert.equal(found.length, 1);
});
program("call refused in words", async () => {
  const call = token.methods.mint(owner, 1).call({ from: accounts[2] });
  await assert.rejects(call, (error) => JSON.stringify(error.cause ?? error, (_, one) =>
    typeof one === "bigint" ? `${one}` : one).includes("caller is not a minter") || /minter/.test(error.message));
});
program("send refused", async () => {
  await assert.rejects(token.methods.mint(owner, 1).send({ from: accounts[2] }));
});
program("estimate", async () => {
  assert((await token.methods.mint(owner, 1).estimateGas({ from: owner })) > 21_000n);
});
program("a batch", async () => {
  const batch = new web3.BatchRequest();
  const found = [batch.add({ method: "eth_blockNumber", params: [] }), batch.add({ method: "eth_chainId", params: [] })];
  await batch.execute();
  assert.equal((await Promise.all(found))[1], "0x7a69");
});
program("transaction and receipt", async () => {
  const { transactionHash } = await eth.sendTransaction({ from: owner, to: NOBODY, value: 1 });
  assert.equal((await eth.getTransaction(transactionHash)).from.toLowerCase(), owner.toLowerCase());
  assert.equal((await eth.getTransactionReceipt(transactionHash)).gasUsed, 21_000n);
});
program("blocks", async () => {
  const block = await eth.getBlock("latest", true);
  assert.equal(block.transactions.length, 1);
  assert.equal(await eth.getBlockTransactionCount("latest"), 1n);
  assert.equal(await eth.getBlockUncleCount("latest"), 0n);
});
program("access list", async () => {
  const data = token.methods.transfer(NOBODY, 1).encodeABI();
  const { accessList } = await eth.createAccessList({ from: owner, to: token.options.address, data });
  assert.equal(accessList[0].address.toLowerCase(), token.options.address.toLowerCase());
});
program("proof", async () => {
  const { accountProof } = await eth.getProof(owner, [`0x${"00".repeat(32)}`]);
  assert(accountProof.length > 0);
});
program("fee history", async () => assert.equal((await eth.getFeeHistory(2, "latest", [50])).reward.length, 2));
program("sign", async () => {
  const signature = await ask("eth_sign", accounts[1], "0x1234");
  assert.equal(web3.eth.accounts.recover("0x1234", signature), accounts[1]);
});
program("sign typed data", async () => {
  const types = { EIP712Domain: [{ name: "name", type: "string" }], Note: [{ name: "text", type: "string" }] };
  const data = { types, primaryType: "Note", domain: { name: "x" }, message: { text: "y" } };
  assert.equal((await eth.signTypedData(accounts[1], data)).length, 132);
});
program("pending nonce without mining", async () => {
  await ask("evm_setAutomine", false);
  const before = Number(await eth.getTransactionCount(accounts[4], "pending"));
  await ask("eth_sendTransaction", { from: accounts[4], to: NOBODY, value: "0x1" });
  assert.equal(Number(await eth.getTransactionCount(accounts[4], "pending")), before + 1);
  await ask("evm_mine");
  await ask("evm_setAutomine", true);
});
program("snapshot, time, mine", async () => {
  const mark = await ask("evm_snapshot");
  const { timestamp } = await eth.getBlock("latest");
  await ask("evm_increaseTime", 1_000);
  await ask("evm_mine");
  assert((await eth.getBlock("latest")).timestamp >= timestamp + 1_000n);
  assert.equal(await ask("evm_revert", mark), true);
  assert.equal((await eth.getBlock("latest")).timestamp, timestamp);
});
program("logs over a socket", async () => {
  const socket = new Web3(socketUrl);
  const contract = new socket.eth.Contract(TOKEN.abi, token.options.address);
  const transfers = contract.events.Transfer();
  transfers.on("connected", () => token.methods.mint(owner, 5).send({ from: owner }));
  const seen = within((resolve) => transfers.on("data", resolve));
  assert.equal((await seen).returnValues.value, 5n);
});
program("heads over a socket", async () => {
  const socket = new Web3(socketUrl);
  const heads = await socket.eth.subscribe("newHeads");
  const seen = within((resolve) => heads.on("data", resolve));
  await ask("evm_mine");
  assert((await seen).number > 0n);
});
program("pending transactions over a socket", async () => {
  const socket = new Web3(socketUrl);
  const pending = await socket.eth.subscribe("pendingTransactions");
  const seen = within((resolve) => pending.on("data", resolve));
  await eth.sendTransaction({ from: owner, to: NOBODY, value: 1 });
  assert.equal((await seen).length, 66);
});
await main();
