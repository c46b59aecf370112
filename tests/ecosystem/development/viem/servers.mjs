// Nodes behind prool on the ports that viem's tests ask, with the options that they want of anvil.
// NODE_BINARY is the node; each forks the chain of the same id that FORKS names (JSON).
import { Instance, Server } from "prool";

const options = { hardfork: "Prague", binary: process.env.NODE_BINARY };

export default async function () {
  const stops = [];
  for (const { port, chainId, forkUrl, forkBlockNumber, noMining } of JSON.parse(process.env.FORKS)) {
    const instance = Instance.anvil({ ...options, chainId, forkUrl, forkBlockNumber, noMining });
    stops.push(await Server.create({ instance, port, host: "127.0.0.1" }).start());
  }
  return () => Promise.all(stops.map((stop) => stop()));
}
