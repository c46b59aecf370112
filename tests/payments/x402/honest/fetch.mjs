// Pays with npm's @x402/fetch.

import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { text } from "node:stream/consumers";

const require = createRequire(process.env.FASTEVM_X402_NPM + "/package.json");
const load = async (name) => import(pathToFileURL(require.resolve(name)).href);
const { wrapFetchWithPaymentFromConfig } = await load("@x402/fetch");
const { ExactEvmScheme } = await load("@x402/evm");
const { privateKeyToAccount } = await load("viem/accounts");

const asked = JSON.parse(await text(process.stdin));
const client = new ExactEvmScheme(privateKeyToAccount(asked.key));
const buy = wrapFetchWithPaymentFromConfig(fetch, { schemes: [{ network: "eip155:*", client }] });

const left = [...asked.urls];
const worker = async () => {
  for (let url = left.shift(); url !== undefined; url = left.shift()) {
    const answer = await buy(url);
    console.log(JSON.stringify({ url, status: answer.status, body: await answer.text() }));
  }
};
await Promise.all(Array.from({ length: asked.at_once }, worker));
