// Runs the published Subsquid processor from block 0, and prints every block that it reads as a line of JSON:
// node processor.cjs URL HEAD SETTINGS
const { EvmBatchProcessor } = require("@subsquid/evm-processor");

const [url, head, settings] = process.argv.slice(2);

let state = { height: -1, hash: "0x", top: [], nonce: 0 };
const database = {
  supportsHotBlocks: true,
  connect: async () => state,
  transact: async (info, run) => {
    await run({});
    state = { ...info.nextHead, top: [], nonce: state.nonce + 1 };
  },
  transactHot: async (info, run) => {
    for (const block of info.newBlocks) await run({}, block);
    state = { ...info.finalizedHead, top: info.newBlocks, nonce: state.nonce + 1 };
  },
};
const asText = (_, value) => (typeof value === "bigint" ? String(value) : value);
const names = ["transactions", "logs", "traces", "stateDiffs"];

new EvmBatchProcessor()
  .setRpcEndpoint({ url, retryAttempts: 2 })
  .setRpcDataIngestionSettings(JSON.parse(settings))
  .setFinalityConfirmation(1)
  .setBlockRange({ from: 0, to: Number(head) })
  .setPrometheusPort(0)
  .includeAllBlocks()
  .addTransaction({})
  .addLog({})
  .addTrace({})
  .addStateDiff({})
  .setFields({
    trace: { createFrom: true, callTo: true, callValue: true, error: true },
    stateDiff: { kind: true, next: true },
    log: { topics: true, data: true },
    transaction: { hash: true, status: true },
  })
  .run(database, async ({ blocks }) => {
    for (const { header, ...block } of blocks) {
      const items = names.map((name) => [name, block[name].map(({ block, transaction, ...item }) => ({ ...item }))]);
      const told = { height: header.height, ...Object.fromEntries(items) };
      process.stdout.write(`BLOCK ${JSON.stringify(told, asText)}\n`);
    }
    // Without this, the processor's metrics server would keep the process alive.
    if (blocks.at(-1)?.header.height === Number(head)) process.stdout.write("", () => process.exit(0));
  });
