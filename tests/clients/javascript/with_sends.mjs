// Sends twenty payments one after another, then twenty concurrently, with viem and with ethers.
import { ethers } from "ethers";
import { createPublicClient, createWalletClient, defineChain, http } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { createNonceManager, jsonRpc } from "viem/nonce";
import { NOBODY, main, privateKey, program, url } from "./common.mjs";

const COUNT = 20;
const otherKey = process.argv[4];
const times = (send) => Array.from({ length: COUNT }, send);

const chain = defineChain({
  id: 31337,
  name: "fastevm",
  nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
  rpcUrls: { default: { http: [url] } },
});
const node = createPublicClient({ chain, transport: http(url), pollingInterval: 250 });
const payer = (options) => {
  const account = privateKeyToAccount(privateKey, options);
  const wallet = createWalletClient({ account, chain, transport: http(url) });
  return () => wallet.sendTransaction({ to: NOBODY, value: 1n });
};
const succeeded = (receipts) => receipts.filter(({ status }) => Number(status === "success" || status)).length;
const mined = (hashes) =>
  Promise.all(hashes.map((hash) => node.waitForTransactionReceipt({ hash }))).then(succeeded);

program("viem, one after another", async () => {
  const pay = payer();
  const hashes = [];
  for (let sent = 0; sent < COUNT; sent++) hashes.push(await pay());
  return mined(hashes);
});
program("viem, at once", async () => {
  const pay = payer({ nonceManager: createNonceManager({ source: jsonRpc() }) });
  return mined(await Promise.all(times(pay)));
});

// Disables the cache of ethers: after 250 ms, a cached nonce may already be used.
const provider = new ethers.JsonRpcProvider(url, undefined, {
  polling: true,
  pollingInterval: 250,
  cacheTimeout: -1,
});
const wallet = new ethers.Wallet(otherKey, provider);
const waited = (sent) => Promise.all(sent.map((tx) => tx.wait())).then(succeeded);

program("ethers, one after another", async () => {
  const sent = [];
  while (sent.length < COUNT) sent.push(await wallet.sendTransaction({ to: NOBODY, value: 1n }));
  return waited(sent);
});
program("ethers, at once", async () => {
  const counting = new ethers.NonceManager(wallet);
  return waited(await Promise.all(times(() => counting.sendTransaction({ to: NOBODY, value: 1n }))));
});
await main();
