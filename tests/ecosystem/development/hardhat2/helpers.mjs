// Tests hardhat-network-helpers 1 with Hardhat 2: node helpers.mjs. NODE_URL names the node.
import { createRequire } from "node:module";
import { tellAll } from "../hardhat_helpers.mjs";

const require = createRequire(import.meta.url);
const { network } = require("hardhat");
const helpers = { ...require("@nomicfoundation/hardhat-network-helpers") };
await tellAll(helpers, (method, ...params) => network.provider.request({ method, params }));
process.exit(0);
