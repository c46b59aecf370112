// A node serves one file of tests: it ends with it, so that few run at a time.
import { afterAll } from "vitest";
import { anvilMainnet, anvilOptimism, anvilSepolia } from "~test/anvil.js";

afterAll(async () => {
  for (const { rpcUrl } of [anvilMainnet, anvilOptimism, anvilSepolia])
    await fetch(`${rpcUrl.http}/destroy`).catch(() => undefined);
});
