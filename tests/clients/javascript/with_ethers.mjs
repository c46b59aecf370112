// Tests what programs do with ethers: pay, deploy, call, watch, get errors.
import { ethers } from "ethers";
import { COUNTER, INITCODE, NOBODY, main, privateKey, program, socketUrl, url, within } from "./common.mjs";

// Disables the cache of ethers: it lasts 250 ms, nearly a block here, so a cached nonce may already be used.
const options = { polling: true, pollingInterval: 50, cacheTimeout: -1 };
const provider = new ethers.JsonRpcProvider(url, undefined, options);
const wallet = new ethers.Wallet(privateKey, provider);
const pay = async (value = 1n) => wallet.sendTransaction({ to: NOBODY, value });

program("chain id", async () => (await provider.getNetwork()).chainId);
program("fees", async () => Object.values((await provider.getFeeData()).toJSON()).length);
program("pay and wait", async () => (await (await pay()).wait()).status);
// NonceManager counts nonces itself: `pending` includes pre-confirmed transactions, but not the pool.
program("pay three times at once", async () => {
  const counting = new ethers.NonceManager(wallet);
  const again = () => counting.sendTransaction({ to: NOBODY, value: 1n });
  const sent = [await again(), await again(), await again()];
  return (await Promise.all(sent.map((tx) => tx.wait()))).map((receipt) => receipt.status);
});
program("wait for two blocks", async () => (await (await pay()).wait(2)).status);
program("deploy and read", async () => {
  const contract = await new ethers.ContractFactory([], INITCODE, wallet).deploy();
  await contract.deploymentTransaction().wait(2); // one block may be a pre-confirmed one
  const address = await contract.getAddress();
  const receipt = await (await wallet.sendTransaction({ to: address })).wait(2);
  const logs = await provider.getLogs({ address, fromBlock: 0 });
  return {
    code: (await provider.getCode(address)) === `0x${COUNTER}`,
    slot: await provider.getStorage(address, 0).then(BigInt),
    same: logs[0].transactionHash === receipt.hash && logs[0].blockHash === receipt.blockHash,
    logs: logs.length,
  };
});
program("too poor", async () => {
  const poor = ethers.Wallet.createRandom(provider);
  try {
    await poor.sendTransaction({ to: NOBODY, value: 1n, gasLimit: 21000 });
  } catch (error) {
    return error.code;
  }
  return "no error";
});
program("blocks over a socket", async () => {
  const socket = new ethers.WebSocketProvider(socketUrl);
  return within((resolve) => socket.once("block", (number) => resolve(number > 0)));
});
program("pending transactions over a socket", async () => {
  const socket = new ethers.WebSocketProvider(socketUrl);
  return within((resolve, reject) => {
    socket.once("pending", (hash) => resolve(hash.length));
    socket._waitUntilReady().then(() => setTimeout(() => pay().catch(reject), 200));
  });
});
await main();
