// Tests that a Subsquid processor reads a development node from block 0, with each set of RPC methods that it can use:
// node cases.mjs URL KEY.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { INITCODE, NOBODY, main, program, url } from "../../../clients/javascript/common.mjs";

const LIMIT = 60_000; // milliseconds for a run
const SETTINGS = {
  "debug methods": {},
  "trace methods": { preferTraceApi: true },
  "state differences of debug methods": { useDebugApiForStateDiffs: true },
};

async function ask(method, ...params) {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const answer = await (await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body })).json();
  if (answer.error) throw new Error(`${method}: ${answer.error.message}`);
  return answer.result;
}

const [from] = await ask("eth_accounts");
async function send(transaction) {
  const hash = await ask("eth_sendTransaction", { from, gas: "0x30d40", ...transaction });
  let receipt;
  while (!receipt) receipt = await ask("eth_getTransactionReceipt", hash);
  return receipt;
}

await send({ to: NOBODY, value: "0x7" });
const { contractAddress: counter } = await send({ data: INITCODE });
await send({ to: counter });
await ask("evm_mine");
const head = Number(await ask("eth_blockNumber"));

function blocks(settings) {
  const words = [join(import.meta.dirname, "processor.cjs"), url, String(head), JSON.stringify(settings)];
  const done = spawnSync("node", words, { timeout: LIMIT, encoding: "utf8" });
  const found = done.stdout.split("\n").filter((line) => line.startsWith("BLOCK ")).map((line) => JSON.parse(line.slice(6)));
  assert.equal(done.status, 0, `${done.stderr.slice(-800)} ${found.length} blocks`);
  return found;
}

for (const [name, settings] of Object.entries(SETTINGS)) {
  let found = [];
  program(`${name}: every block from block 0`, () => {
    found = blocks(settings);
    assert.deepEqual(found.map((block) => block.height), [...Array(head + 1).keys()]);
  });
  program(`${name}: items`, () => {
    const count = (kind) => found.flatMap((block) => block[kind]).length;
    assert.deepEqual([count("transactions"), count("logs"), count("traces")], [3, 1, 3]);
    const values = found.flatMap((block) => block.stateDiffs).filter((item) => item.address === counter);
    assert.ok(values.some((item) => item.key.startsWith("0x") && BigInt(item.next) === 1n));
  });
}
await main();
