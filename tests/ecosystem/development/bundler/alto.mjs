// Tests the bundler alto on a development node, and the tracer of its safe mode: node alto.mjs URL KEY.
// The published safe mode cannot decode the results of its own tracer on any node: it traces
// EntryPoint 0.6 with the tracer for 0.7, which expects frames two calls deeper.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { createTestClient, decodeErrorResult, encodeFunctionData, http, publicActions, walletActions, zeroAddress } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { foundry } from "viem/chains";
import { main, privateKey, program, url } from "../../../clients/javascript/common.mjs";

const LIMIT = 60_000; // milliseconds until the bundler answers
const ETHER = 10n ** 18n;
const load = createRequire(import.meta.url);
// The bundler expects the contracts at these addresses. They are deployed elsewhere, and their code is copied there.
const VERSIONS = {
  0.6: {
    address: "0x5FF137D4b0FDCD49DcA30c7CF57E578a026d2789",
    artifact: load("account-abstraction-contracts-0.6/artifacts/EntryPoint.json"),
    more: { initCode: "0x", paymasterAndData: "0x" },
  },
  0.7: {
    address: "0x0000000071727De22E5E9d8BAf0edAc6f37da032",
    artifact: load("@account-abstraction/contracts/artifacts/EntryPoint.json"),
    more: {},
  },
};
const PACKAGE = join(import.meta.dirname, "node_modules/@pimlico/alto");
const VALIDATION = join(PACKAGE, "esm/rpc/validation");
const loaded = (name) => import(pathToFileURL(join(VALIDATION, name)).href);
const { bundlerCollectorTracer } = await loaded("BundlerCollectorTracerV06.js");
const { getTracerBodyString } = await loaded("tracer.js");
// Code of an account that accepts every operation. Other code is put in front of it.
const ACCEPT = "5f5f5260205ff3";
const OTHER = "0x00000000000000000000000000000000000000c5"; // returns its slot 0
const READS_OTHER = `60205f5f5f73${OTHER.slice(2)}620186a0fa50`;
const SLOT_0 = "0x" + "00".repeat(32);
const readsOf = (level, address) => Object.keys(level.access[address]?.reads ?? {});
// Name -> the code in front, and a check of what the tracer collects in the call to the account.
const COLLECTED = {
  "nothing forbidden": ["", (level) => !level.opcodes.TIMESTAMP && !level.opcodes.NUMBER],
  TIMESTAMP: ["4250", (level) => level.opcodes.TIMESTAMP === 1],
  NUMBER: ["4350", (level) => level.opcodes.NUMBER === 1],
  "BALANCE of another account": [`73${OTHER.slice(2)}3150`, (level) => level.opcodes.BALANCE === 1],
  "storage of another contract": [READS_OTHER, (level) => readsOf(level, OTHER).includes(SLOT_0)],
  "its own storage": ["5f5450", (level, sender) => readsOf(level, sender).includes(SLOT_0)],
};

const account = privateKeyToAccount(privateKey);
const client = createTestClient({ account, chain: foundry, mode: "anvil", transport: http(url) })
  .extend(publicActions)
  .extend(walletActions);
const done = async (hash) => client.waitForTransactionReceipt({ hash, pollingInterval: 20 });

for (const { address, artifact } of Object.values(VERSIONS)) {
  const { contractAddress } = await done(
    await client.deployContract({ abi: artifact.abi, bytecode: artifact.bytecode, gas: 12_000_000n }),
  );
  await client.setCode({ address, bytecode: await client.getCode({ address: contractAddress }) });
}
await client.setCode({ address: OTHER, bytecode: "0x5f545f5260205ff3" });

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

const port = await freePort();
const executor = generatePrivateKey();
for (const key of [executor]) await client.setBalance({ address: privateKeyToAccount(key).address, value: 1_000n * ETHER });
const options = {
  entrypoints: Object.values(VERSIONS).map(({ address }) => address).join(","),
  "executor-private-keys": executor,
  "utility-private-key": privateKey,
  "rpc-url": url,
  "safe-mode": "false",
  "min-entity-stake": "1",
  "min-entity-unstake-delay": "1",
  "block-time": "100",
  port: String(port),
  "log-level": "warn",
};
const words = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]);
const bundler = spawn(join(import.meta.dirname, "node_modules/.bin/alto"), words);
let log = "";
for (const stream of [bundler.stdout, bundler.stderr]) stream.on("data", (text) => (log += text));
process.on("exit", () => bundler.kill("SIGKILL"));

async function ask(method, ...params) {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const headers = { "content-type": "application/json" };
  const answer = await (await fetch(`http://127.0.0.1:${port}`, { method: "POST", headers, body })).json();
  if (answer.error) throw new Error(answer.error.message);
  return answer.result;
}

program("the bundler starts", async () => {
  for (const ends = Date.now() + LIMIT; ; await sleep(100)) {
    const found = await ask("eth_supportedEntryPoints").catch(() => null);
    if (found) return assert.equal(found.length, 2);
    if (Date.now() > ends || bundler.exitCode !== null) throw new Error(`not started: ${log.slice(-1_500)}`);
  }
});

let count = 0;
async function operationOf(version, before) {
  const { address: entryPoint, artifact, more } = VERSIONS[version];
  const sender = `0x${(0xacc000 + (count += 1)).toString(16).padStart(40, "0")}`;
  await client.setCode({ address: sender, bytecode: `0x${before}${ACCEPT}` });
  const { abi } = artifact;
  await done(await client.writeContract({ address: entryPoint, abi, functionName: "depositTo", args: [sender], value: ETHER }));
  const gas = "0x" + (10n ** 10n).toString(16);
  const operation = {
    sender, nonce: "0x0", callData: "0x", signature: "0x",
    callGasLimit: "0x186a0", verificationGasLimit: "0x30d40", preVerificationGas: "0x30d40",
    maxFeePerGas: gas, maxPriorityFeePerGas: gas, ...more,
  };
  return { operation, entryPoint, abi };
}

async function receiptOf({ operation, entryPoint }) {
  const hash = await ask("eth_sendUserOperation", operation, entryPoint);
  for (const ends = Date.now() + LIMIT; Date.now() < ends; await sleep(50)) {
    const receipt = await ask("eth_getUserOperationReceipt", hash).catch(() => null);
    if (receipt) return receipt;
  }
  throw new Error(`no receipt: ${log.slice(-1_500)}`);
}

for (const version of Object.keys(VERSIONS)) {
  program(`EntryPoint ${version}: an operation is included`, async () => {
    assert.equal((await receiptOf(await operationOf(version, ""))).success, true);
  });
}

for (const [name, [before, isCollected]] of Object.entries(COLLECTED)) {
  program(`the tracer collects ${name}`, async () => {
    const { operation, entryPoint, abi } = await operationOf("0.6", before);
    const data = encodeFunctionData({ abi, functionName: "simulateValidation", args: [operation] });
    const call = { from: zeroAddress, to: entryPoint, data };
    const options = { tracer: getTracerBodyString(bundlerCollectorTracer) };
    const found = await client.request({ method: "debug_traceCall", params: [call, "latest", options] });
    const { errorName } = decodeErrorResult({ abi, data: found.calls.at(-1).data });
    assert.equal(errorName, "ValidationResult");
    const level = found.callsFromEntryPoint.find((each) => each.topLevelTargetAddress === operation.sender);
    assert.ok(isCollected(level, operation.sender), JSON.stringify(level));
  });
}
await main();
