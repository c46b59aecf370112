// The node under test is the only network. No compiler is downloaded.
import networkHelpers from "@nomicfoundation/hardhat-network-helpers";
import { defineConfig } from "hardhat/config";

export default defineConfig({
  plugins: [networkHelpers],
  solidity: "0.8.28",
  networks: {
    target: { type: "http", url: process.env.NODE_URL ?? "http://127.0.0.1:8545" },
  },
});
