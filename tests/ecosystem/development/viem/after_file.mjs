// Ends the nodes of a test file after its tests, so that few nodes run at a time.
import { afterAll } from "vitest";
import { anvilMainnet, anvilOptimism, anvilSepolia } from "~test/anvil.js";

afterAll(async () => {
  for (const { rpcUrl } of [anvilMainnet, anvilOptimism, anvilSepolia])
    await fetch(`${rpcUrl.http}/destroy`).catch(() => undefined);
});
