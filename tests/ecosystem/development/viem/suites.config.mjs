// Configures vitest for viem's source: import aliases, setup, time limits, and the nodes that servers.mjs starts.
import { join } from "node:path";

const source = process.env.VIEM_SOURCE;
const here = import.meta.dirname;

export default {
  root: source,
  test: {
    alias: [
      { find: "~contracts", replacement: join(source, "contracts") },
      { find: "~test", replacement: join(source, "test/src") },
      { find: /^viem$/, replacement: join(source, "src/index.ts") },
      { find: /^viem\/(.*)/, replacement: join(source, "src/$1") },
    ],
    include: ["src/**/*.test.ts"],
    setupFiles: [join(source, "test/setup.ts"), join(here, "after_file.mjs")],
    globalSetup: [join(here, "servers.mjs")],
    hookTimeout: 60_000,
    testTimeout: 240_000, // JavaScript computes the proofs of blobs for a minute on a busy machine
    maxWorkers: 2,
    experimental: { fsModuleCache: true },
    retry: Number(process.env.VIEM_RETRIES),
  },
};
