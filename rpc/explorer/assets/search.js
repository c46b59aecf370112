// The search: finds the transaction, block or address that a text names.

import { el } from "./dom.js";
import { allNames } from "./names.js";
import { call, tryCall } from "./rpc.js";

const NAMES = 100; // most names that are suggested

/** The route, after `#`, to which a text leads. Throws an Error if nothing fits. */
export async function find(text) {
  const wanted = text.trim();
  const lower = wanted.toLowerCase();
  if (/^0x[0-9a-f]{64}$/.test(lower)) return findHash(lower);
  if (/^0x[0-9a-f]{40}$/.test(lower)) return `/address/${wanted}`;
  if (["latest", "pending", "earliest", "safe", "finalized"].includes(lower)) {
    const block = await tryCall("eth_getBlockByNumber", lower, false);
    if (block) return `/block/${Number(block.number)}`;
  }
  const number = lower.replaceAll(/[,_\s]/g, "").replace(/^(block)?#?/, "");
  if (/^(\d{1,15}|0x[0-9a-f]{1,12})$/.test(number)) return `/block/${Number(number)}`;
  const names = allNames();
  const found = names.find(([name]) => name.toLowerCase() === lower)
    ?? names.find(([name]) => lower && name.toLowerCase().startsWith(lower))
    ?? names.find(([name]) => lower && name.toLowerCase().includes(lower));
  if (found) return `/address/${found[1]}`;
  throw new Error(wanted ? `Nothing is called “${wanted}”.` : "Type a hash, a number, an address or a name.");
}

async function findHash(hash) {
  const [transaction, block] = await Promise.all([
    call("eth_getTransactionByHash", hash), tryCall("eth_getBlockByHash", hash, false)]);
  return block && !transaction ? `/block/${hash}` : `/tx/${hash}`;
}

/** Fill the suggestions with the known names. */
export function suggest(list) {
  list.replaceChildren(...allNames().slice(0, NAMES).map(([name, address]) =>
    el("option", { value: name, label: address })));
}
