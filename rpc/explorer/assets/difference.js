// What a transaction changed: balances, nonces, code and storage of accounts, before and after.

import { el, table } from "./dom.js";
import { amount, big, count, num, short, sizeOf } from "./format.js";
import { addressLink } from "./links.js";

const EMPTY_SLOT = `0x${"0".repeat(64)}`;

/** A word as people read it: small numbers in decimal, all else in hex without leading zeros. */
export function wordText(word) {
  const value = BigInt(word);
  return value < 10n ** 15n ? value.toLocaleString("en") : `0x${value.toString(16)}`;
}

/** The number of a slot; a hash is cut in the middle, and whole as title. */
export const slotName = (word) => el("code", { text: short(wordText(word)), title: word });

/** A storage value as a short Solidity string, an address or a number, whichever it looks like. */
export function slotValue(word) {
  const text = shortText(word);
  if (text) return el("q", { text, title: word });
  const value = BigInt(word);
  if (value >> 96n && !(value >> 160n)) return addressLink(`0x${word.slice(-40)}`);
  return slotName(word);
}

/** The text of a short Solidity string in a word, which ends with twice its length; else null. */
function shortText(word) {
  const hex = word.slice(2).padStart(64, "0");
  const digits = parseInt(hex.slice(62), 16);
  if (!digits || digits % 2 || digits > 62 || /[^0]/.test(hex.slice(digits, 62))) return null;
  const text = hex.slice(0, digits).replace(/../g, (pair) => String.fromCharCode(parseInt(pair, 16)));
  return /^[\x20-\x7e]+$/.test(text) ? text : null;
}

/** Rows of prestateTracer's difference: [address, what, before, after]. */
export function changesOf({ pre, post }) {
  const rows = [];
  for (const address of new Set([...Object.keys(pre), ...Object.keys(post)])) {
    const [before, after] = [pre[address], post[address]];
    const old = before ?? {};
    const fresh = after ?? {};
    const add = (what, from, to) => rows.push({ address, what, from, to });
    if (!before) add("account", "none", "created");
    if (before && !after) add("account", "existed", "destroyed");
    if (fresh.balance !== undefined) {
      const delta = big(fresh.balance) - (big(old.balance) ?? 0n);
      add("balance", amount(old.balance ?? 0), el("span", {}, amount(fresh.balance), " ",
        el(delta < 0n ? "small.minus" : "small.plus", {}, delta < 0n ? "" : "+", amount(delta))));
    }
    if (fresh.nonce !== undefined) add("nonce", count(num(old.nonce)), count(num(fresh.nonce)));
    if (fresh.code !== undefined) {
      const size = (code) => (code && code !== "0x" ? `${count(sizeOf(code))} bytes` : "none");
      add("code", size(old.code), size(fresh.code));
    }
    const slots = new Set([...Object.keys(old.storage ?? {}), ...Object.keys(fresh.storage ?? {})]);
    for (const slot of slots) {
      add(el("span", {}, "slot ", slotName(slot)), slotValue(old.storage?.[slot] ?? EMPTY_SLOT),
        slotValue(fresh.storage?.[slot] ?? EMPTY_SLOT));
    }
  }
  return rows;
}

/** The difference as a table. */
export function differenceTable(difference) {
  const rows = changesOf(difference);
  if (!rows.length) return el("p.dim", { text: "Nothing changed." });
  let last = null;
  const made = table("State before and after", ["Account", "What", "Before", "After"],
    rows.map(({ address, what, from, to }) => {
      const shown = address === last ? "" : addressLink(address);
      last = address;
      return [shown, what, from, to];
    }));
  made.classList.add("changes");
  return made;
}
