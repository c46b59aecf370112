// Tests `ponder start` on a development node that has blocks, events and payments: node start.mjs URL KEY.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createTestClient, http, publicActions, walletActions } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { foundry } from "viem/chains";
import { NOBODY, main, privateKey, program, url } from "../../../clients/javascript/common.mjs";
import { TOKEN, terms } from "../javascript/token.mjs";

const LIMIT = 60_000; // milliseconds until the indexer is ready
const account = privateKeyToAccount(privateKey);
const client = createTestClient({ account, chain: foundry, mode: "anvil", transport: http(url) })
  .extend(publicActions)
  .extend(walletActions);
const done = async (hash) => client.waitForTransactionReceipt({ hash, pollingInterval: 20 });

const { contractAddress } = await done(
  await client.deployContract({ abi: TOKEN.abi, bytecode: TOKEN.bytecode, args: terms(account.address) }),
);
const token = { address: contractAddress, abi: TOKEN.abi };
await done(await client.writeContract({ ...token, functionName: "mint", args: [account.address, 1_000n] }));
await done(await client.writeContract({ ...token, functionName: "transfer", args: [NOBODY, 5n] }));
await done(await client.sendTransaction({ to: NOBODY, value: 7n }));
await client.mine({ blocks: 3 });

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

const port = await freePort();
const folder = mkdtempSync(join(tmpdir(), "ponder-"));
const words = ["start", "--root", import.meta.dirname, "--schema", "tried", "--port", String(port)];
const environment = {
  ...process.env,
  NODE_URL: url,
  TOKEN: contractAddress,
  PAYER: account.address,
  DATABASE: folder,
  PONDER_TELEMETRY_DISABLED: "true",
};
const indexer = spawn(join(import.meta.dirname, "node_modules/.bin/ponder"), [...words, "--hostname", "127.0.0.1"], {
  env: environment,
  cwd: import.meta.dirname,
});
let log = "";
for (const stream of [indexer.stdout, indexer.stderr]) stream.on("data", (text) => (log += text));
process.on("exit", () => {
  indexer.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

async function seen(kind) {
  const rows = await (await fetch(`http://127.0.0.1:${port}/seen`)).json();
  return rows.filter((row) => row.kind === kind).sort((one, other) => one.block - other.block);
}

async function until(test) {
  for (const ends = Date.now() + LIMIT; ; await sleep(100)) {
    const found = await test().catch(() => false);
    if (found) return found;
    if (Date.now() > ends || indexer.exitCode !== null) throw new Error(`not reached: ${log.slice(-2_000)}`);
  }
}

program("the indexer is ready", async () => {
  await until(async () => (await fetch(`http://127.0.0.1:${port}/ready`)).ok);
});
program("every block from block 0", async () => {
  const head = Number(await client.getBlockNumber());
  const rows = await until(async () => {
    const found = await seen("block");
    return found.length > head && found;
  });
  assert.deepEqual(rows.map((row) => row.block), [...Array(head + 1).keys()]);
  assert.equal(rows[0].value, (await client.getBlock({ blockNumber: 0n })).hash);
});
program("events", async () => assert.deepEqual((await seen("event")).map((row) => row.value), ["1000", "5"]));
program("calls in traces", async () => assert.deepEqual((await seen("call")).map((row) => row.value), ["5"]));
program("payments in traces", async () => {
  assert.deepEqual((await seen("payment")).map((row) => row.value).filter((value) => value !== "0"), ["7"]);
});
program("transactions", async () => assert.equal((await seen("transaction")).length, 4));
program("a new block", async () => {
  const hash = await client.sendTransaction({ to: NOBODY, value: 9n });
  await done(hash);
  await until(async () => (await seen("transaction")).some((row) => row.value === hash));
});
await main();
