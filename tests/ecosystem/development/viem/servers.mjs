// Starts prool servers on the ports that viem's tests use. They start nodes with the anvil options of these tests.
// NODE_BINARY: path of the node. FORKS: JSON with the port, the chain id and the chain to fork of each server.
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
