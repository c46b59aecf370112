// hardhat-network-helpers 3 over Hardhat 3: node helpers.mjs, with NODE_URL.
import { network } from "hardhat";
import { tellAll } from "../hardhat_helpers.mjs";

const { networkHelpers, provider } = await network.connect("target");
await tellAll(networkHelpers, (method, ...params) => provider.request({ method, params }));
process.exit(0);
