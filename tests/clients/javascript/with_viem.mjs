// Tests what programs do with viem: pay, simulate, prove, delegate, watch.
import { createPublicClient, createWalletClient, defineChain, http, webSocket } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { INITCODE, NOBODY, main, privateKey, program, socketUrl, url, within } from "./common.mjs";

const chain = defineChain({
  id: 31337,
  name: "fastevm",
  nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
  rpcUrls: { default: { http: [url] } },
});
const account = privateKeyToAccount(privateKey);
const from = account.address;
const node = createPublicClient({ chain, transport: http(url), pollingInterval: 50 });
const wallet = createWalletClient({ account, chain, transport: http(url) });
const pay = () => wallet.sendTransaction({ to: NOBODY, value: 1n });
const receipt = (hash, options) => node.waitForTransactionReceipt({ hash, ...options });
const one = { account: from, to: NOBODY, value: 1n };

program("pay and wait", async () => (await receipt(await pay())).status);
program("wait for two blocks", async () => (await receipt(await pay(), { confirmations: 2 })).status);
program("send and wait in one request", async () => {
  const request = await wallet.prepareTransactionRequest({ to: NOBODY, value: 1n });
  const raw = await wallet.signTransaction(request);
  return (await node.request({ method: "eth_sendRawTransactionSync", params: [raw] })).status;
});
program("simulate blocks", async () => {
  const blocks = await node.simulateBlocks({ blocks: [{ calls: [one] }, { calls: [one, one] }] });
  return blocks.map((block) => block.calls.map((call) => call.status));
});
program("fees", async () => {
  const history = await node.getFeeHistory({ blockCount: 2, rewardPercentiles: [25, 75] });
  const { maxFeePerGas } = await node.estimateFeesPerGas();
  return [history.reward.length, maxFeePerGas > 0n];
});
program("estimate", async () => node.estimateGas(one));
program("access list", async () => (await node.createAccessList(one)).accessList);
program("proof", async () => (await node.getProof({ address: from, storageKeys: [] })).accountProof.length > 0);
program("delegate", async () => {
  const authorization = await wallet.signAuthorization({ contractAddress: NOBODY, executor: "self" });
  const hash = await wallet.sendTransaction({ to: from, authorizationList: [authorization] });
  const { status } = await receipt(hash, { confirmations: 2 });
  return [status, await node.getCode({ address: from })];
});
program("blocks over a socket", async () => {
  const socket = createPublicClient({ chain, transport: webSocket(socketUrl) });
  return within((resolve, reject) => {
    socket.watchBlocks({ onBlock: (block) => resolve(block.number > 0n), onError: reject });
  });
});
program("events through a filter", async () =>
  within((resolve, reject) => {
    node.watchEvent({ onLogs: (logs) => resolve(logs.length), onError: reject });
    setTimeout(async () => {
      const { contractAddress } = await receipt(await wallet.sendTransaction({ data: INITCODE }));
      await wallet.sendTransaction({ to: contractAddress });
    }, 200);
  }),
);
program("pending transactions through a filter", async () =>
  within((resolve, reject) => {
    node.watchPendingTransactions({ onTransactions: (all) => resolve(all.length), onError: reject });
    setTimeout(() => pay().catch(reject), 200);
  }),
);
await main();
