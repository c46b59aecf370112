// Tests hardhat-network-helpers 3 with Hardhat 3: node helpers.mjs. NODE_URL names the node.
import { network } from "hardhat";
import { tellAll } from "../hardhat_helpers.mjs";

const { networkHelpers, provider } = await network.connect("target");
await tellAll(networkHelpers, (method, ...params) => provider.request({ method, params }));
process.exit(0);
