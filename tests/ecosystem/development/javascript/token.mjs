// The contract that the programs use: a token with events, revert reasons and permits.
import { readFileSync } from "node:fs";

const file = "../../../../fastevm/payments/contracts/artifacts/Token.json";
export const TOKEN = JSON.parse(readFileSync(new URL(file, import.meta.url)));
export const terms = (admin) => ["Dollar", "USD", 6, admin];
