// Tests what programs do with viem on a fork. Before the fork block, a counter was deployed and called twice.
import { createPublicClient, createWalletClient, defineChain, http } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { NOBODY, main, privateKey, program, url } from "./common.mjs";

const [counter, before] = process.argv.slice(4); // its address, and a transaction that counted
const chain = defineChain({
  id: 31337,
  name: "fork",
  nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
  rpcUrls: { default: { http: [url] } },
});
const account = privateKeyToAccount(privateKey);
const node = createPublicClient({ chain, transport: http(url), pollingInterval: 50 });
const wallet = createWalletClient({ account, chain, transport: http(url) });
const receipt = (hash) => node.waitForTransactionReceipt({ hash });
const border = (await node.getTransactionReceipt({ hash: before })).blockNumber;
const slot = (options) => node.getStorageAt({ address: counter, slot: "0x0", ...options });
let counted;

program("call", async () => BigInt((await node.call({ to: counter })).data));
program("pay and wait", async () => (await receipt(await wallet.sendTransaction({ to: NOBODY, value: 1n }))).status);
program("count", async () => {
  counted = await receipt(await wallet.sendTransaction({ to: counter }));
  return [counted.status, counted.logs.length, counted.blockNumber > border];
});
program("receipt before the fork", async () => {
  const { status, logs } = await node.getTransactionReceipt({ hash: before });
  return [status, BigInt(logs[0].data)];
});
program("logs across the border", async () => {
  const logs = await node.getLogs({ address: counter, fromBlock: 0n, toBlock: "latest" });
  return logs.map((log) => [BigInt(log.data), log.blockNumber > border]);
});
program("storage on both sides", async () =>
  [await slot({ blockNumber: border }), await slot({})].map(BigInt),
);
program("blocks on both sides", async () => {
  const above = await node.getBlock({ blockNumber: counted.blockNumber });
  const below = await node.getBlock({ blockNumber: border });
  return [above.transactions.includes(counted.transactionHash), below.transactions.includes(before)];
});
program("traces on both sides", async () => {
  const trace = (hash) => node.request({ method: "debug_traceTransaction", params: [hash, { tracer: "callTracer" }] });
  return [await trace(before), await trace(counted.transactionHash)].map(({ output }) => BigInt(output));
});
program("simulate blocks", async () => {
  const calls = [{ account: account.address, to: counter }];
  const blocks = await node.simulateBlocks({ blocks: [{ calls }, { calls }] });
  return blocks.map(({ calls }) => BigInt(calls[0].data));
});
await main();
