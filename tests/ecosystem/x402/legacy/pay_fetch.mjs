// Pays for a URL with version 1 of x402-fetch: node pay_fetch.mjs URL
import { createSigner, wrapFetchWithPayment } from "x402-fetch";

const [url] = process.argv.slice(2);
const signer = await createSigner("base-sepolia", process.env.PAYER_KEY);
const pay = wrapFetchWithPayment(fetch, signer);
const started = performance.now();
const answer = await pay(url);
const told = {
  status: answer.status,
  body: await answer.text(),
  receipt: answer.headers.get("X-PAYMENT-RESPONSE"),
  ms: Math.round(performance.now() - started),
};
console.log(JSON.stringify(told));
process.exit(0);
