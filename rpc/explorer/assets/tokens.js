// Amounts of tokens in their own unit: symbol and decimals are read from the token once.

import { decode } from "./abi.js";
import { newest } from "./accounts.js";
import { el } from "./dom.js";
import { fixed } from "./format.js";
import { tryCall } from "./rpc.js";

const MOST = 500; // tokens that are remembered
const MOST_DECIMALS = 77;
const LONGEST_SYMBOL = 16; // characters
const AMOUNTS = /^_?(value|amount|wad|assets|amt)$/i;
const TOKEN_FUNCTIONS = new Set(["transfer", "transferFrom", "approve", "mint", "burn", "permit",
  "transferWithAuthorization", "receiveWithAuthorization", "transferWithMemo", "increaseAllowance",
  "decreaseAllowance", "Transfer", "Approval", "balanceOf", "allowance", "totalSupply"]);
const known = new Map(); // lower-case address -> promise of {symbol, decimals}, or of null

/** Symbol and decimals of a token; null for a contract that does not have both. */
export function tokenAt(address) {
  const key = address.toLowerCase();
  if (!known.has(key)) {
    if (known.size >= MOST) known.clear();
    known.set(key, read(address).catch(() => null));
  }
  return known.get(key);
}

async function read(address) {
  const [symbol, decimals] = await Promise.all([
    value(address, "0x95d89b41", "string"), value(address, "0x313ce567", "uint8")]);
  if (symbol === null || decimals === null || decimals > MOST_DECIMALS) return null;
  return { symbol: symbol.slice(0, LONGEST_SYMBOL), decimals: Number(decimals) };
}

/** The result of a function without parameters; null if the call fails. */
export async function value(address, data, type) {
  const answer = await tryCall("eth_call", { to: address, data }, newest());
  try {
    return decode([{ type }], answer.slice(2))[0];
  } catch {
    return null;
  }
}

/** Whether an input of an entry is an amount of the token whose function or event it is. */
export const isAmount = (entry, input) =>
  /^uint(256)?$/.test(input.type) && TOKEN_FUNCTIONS.has(entry.name)
  && (AMOUNTS.test(input.name) || (!input.name && entry.inputs.length <= 1));

/** An integer, and beside it the amount in the token's unit once that is known. */
export function tokenAmount(units, address) {
  const exact = units.toLocaleString("en");
  const shown = el("span.amount", { title: `${exact} units` }, el("code", { text: exact }));
  tokenAt(address).then((token) => {
    if (token) shown.prepend(`${fixed(units, token.decimals)} ${token.symbol} `);
    if (token) shown.lastChild.replaceWith(el("small", { text: exact }));
  });
  return shown;
}

/** A token amount for lists: only the amount in the token's unit. */
export function shortAmount(units, address) {
  const shown = el("span.amount", { title: `${units.toLocaleString("en")} units` });
  tokenAt(address).then((token) => {
    if (token) shown.textContent = `${fixed(units, token.decimals, 4)} ${token.symbol}`;
  });
  return shown;
}
