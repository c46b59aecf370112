// Names and ABIs of contracts from the node's artifact files, found by the code at an address.

import { parseAbi } from "./abi.js";
import { learn, learned } from "./names.js";
import { Refusal, call } from "./rpc.js";

const MOST = 2000; // addresses that are remembered
const AGAIN = 5000; // milliseconds after which an unknown contract is requested again
const known = new Map(); // lower-case address -> {name, abi, entries}, or null
const asked = new Map(); // lower-case address -> time of the last request that did not find it
let isServed = true; // the node has the method

/** The contract of the node's files at an address; null for none, undefined if not read yet. */
export const contractOf = (address) => known.get(address.toLowerCase());

/**
 * Read the contracts at addresses, except those requested less than 5 s ago. Returns whether any
 * was found.
 */
export async function readContracts(addresses) {
  const wanted = [...new Set(addresses.filter(Boolean).map((address) => address.toLowerCase()))]
    .filter((address) => !known.get(address) && !(Date.now() - asked.get(address) < AGAIN));
  if (!isServed || !wanted.length) return false;
  if (known.size + wanted.length > MOST) [known, asked].forEach((all) => all.clear());
  for (const address of wanted) { // asked, so that no second request is sent
    known.set(address, null);
    asked.set(address, Date.now()); // the developer may compile meanwhile
  }
  const found = await Promise.all(wanted.map((address) => call("fastevm_contract", address).catch(refused)));
  wanted.forEach((address, i) => found[i] && keep(address, found[i]));
  if (found.some(Boolean)) learned.dispatchEvent(new Event("names"));
  return found.some(Boolean);
}

function refused(error) {
  if (!(error instanceof Refusal)) throw error;
  isServed = error.code !== -32601 && isServed;
  return null;
}

function keep(address, { name, abi }) {
  try {
    const entries = parseAbi(JSON.stringify(abi));
    learn(entries);
    known.set(address, { name, abi, entries });
  } catch {
    // an ABI that this page does not understand
  }
}
