// Indexes blocks, logs, calls and transfers from block 0. Calls and transfers need a trace of each block.
import { createConfig } from "ponder";
import { parseAbi } from "viem";

export const abi = parseAbi([
  "event Transfer(address indexed from, address indexed to, uint256 value)",
  "function mint(address to, uint256 value) returns (bool)",
  "function transfer(address to, uint256 value) returns (bool)",
]);
const token = process.env.TOKEN as `0x${string}`;
const payer = process.env.PAYER as `0x${string}`;

export default createConfig({
  database: { kind: "pglite", directory: process.env.DATABASE },
  chains: { development: { id: 31337, rpc: process.env.NODE_URL, pollingInterval: 100, disableCache: true } },
  contracts: { Token: { abi, chain: "development", address: token, startBlock: 0, includeCallTraces: true } },
  accounts: { Payer: { chain: "development", address: payer, startBlock: 0 } },
  blocks: { Every: { chain: "development", interval: 1, startBlock: 0 } },
});
