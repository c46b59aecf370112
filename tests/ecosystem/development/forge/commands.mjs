// Tests the forge commands that use a node: node commands.mjs URL KEY. Prints a line of JSON for each case.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const [url, key] = process.argv.slice(2);
const here = import.meta.dirname;
const project = mkdtempSync(join(tmpdir(), "forge-"));
const OWNER = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
const SECONDS = 60;
const PROXY = "0x4e59b44847b379578588920cA78FbF26c0B4956C";
cpSync(join(here, "project"), project, { recursive: true });
writeFileSync(join(project, "foundry.toml"), [
  "[profile.default]", "libs = []", "offline = true", `solc = "${join(here, "solc.cjs")}"`,
].join("\n"));
const variables = { ...process.env, KEY: key, SALT: "1", COUNTER: "0" };

async function forge(...words) {
  const options = { cwd: project, env: variables, timeout: SECONDS * 1_000 };
  const { stdout, stderr } = await promisify(execFile)(join(here, "node_modules/.bin/forge"), words, options);
  if (/^Error/m.test(stderr)) throw new Error(stderr); // npm's forge ends with 0 even so
  return stdout;
}

async function ask(method, ...params) {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const headers = { "content-type": "application/json" };
  return (await (await fetch(url, { method: "POST", body, headers })).json()).result;
}

async function script(name, ...more) {
  const said = await forge("script", `script/Scripts.s.sol:${name}`, "--rpc-url", url, "--broadcast", ...more);
  assert.match(said, /ONCHAIN EXECUTION COMPLETE & SUCCESSFUL/);
  const { receipts } = JSON.parse(readFileSync(join(project, "broadcast/Scripts.s.sol/31337/run-latest.json")));
  assert(receipts.every((one) => one.status === "0x1"));
  return receipts;
}

async function create(...more) {
  const words = ["create", "src/Counter.sol:Counter", "--rpc-url", url, "--broadcast", "--json", "--value", "1"];
  const { deployedTo } = JSON.parse(await forge(...words, ...more, "--constructor-args", "5"));
  assert.equal(BigInt(await ask("eth_getStorageAt", deployedTo, "0x0", "latest")), 5n);
  return deployedTo;
}

const cases = {
  build: async () => assert.match(await forge("build"), /Compiler run successful/),
  "create by a key": async () => { variables.COUNTER = await create("--private-key", key); },
  "create by an account of the node": () => create("--unlocked", "--from", OWNER),
  "a script of many transactions": async () => {
    assert.equal((await script("Deploy")).length, 21);
  },
  "a script, one after the other": async () => {
    assert.equal((await script("Deploy", "--slow")).length, 21);
  },
  "a script by CREATE2": async () => {
    const [deployed] = await script("DeploySalted");
    assert.equal(deployed.to, PROXY.toLowerCase());
  },
  "a script of an account of the node": async () => {
    assert.equal((await script("Pay", "--unlocked", "--sender", OWNER)).length, 1);
  },
  "a script with the older fees": async () => {
    assert((await script("Deploy", "--legacy")).every((one) => one.type === "0x0"));
  },
  "a script that fails sends nothing": async () => {
    const before = await ask("eth_getTransactionCount", OWNER, "pending");
    await assert.rejects(script("Fail"), /TooLarge\(101\)/);
    assert.equal(await ask("eth_getTransactionCount", OWNER, "pending"), before);
  },
  "a test on the state of the node": async () => {
    assert.match(await forge("test", "--fork-url", url), /1 passed; 0 failed/);
  },
};

for (const [name, run] of Object.entries(cases)) {
  const told = { name, value: true };
  try {
    await run();
  } catch (error) {
    delete told.value;
    told.error = error.message.slice(0, 400);
  }
  console.log(JSON.stringify(told));
}
rmSync(project, { recursive: true });
