// Pays for a URL with @x402/fetch: node pay_fetch.mjs URL [exact|auth-capture] [TIMES]
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import { AuthCaptureEvmScheme } from "@x402/evm/auth-capture/client";
import { privateKeyToAccount } from "viem/accounts";

const [url, scheme = "exact", times = "1"] = process.argv.slice(2);
const account = privateKeyToAccount(process.env.PAYER_KEY);
const client = new x402Client();
const made = scheme === "exact" ? new ExactEvmScheme(account) : new AuthCaptureEvmScheme(account);
client.register("eip155:84532", made);
const pay = wrapFetchWithPayment(fetch, client);
for (let at = 0; at < Number(times); at++) {
  const started = performance.now();
  const answer = await pay(url);
  const told = {
    status: answer.status,
    body: await answer.text(),
    receipt: answer.headers.get("PAYMENT-RESPONSE"),
    ms: Math.round(performance.now() - started),
  };
  console.log(JSON.stringify(told));
}
