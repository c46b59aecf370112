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

/** A storage value; the whole word is its title. `brief`: long ones are cut in the middle. */
export const slotValue = (word, brief = true) =>
  el("code", { text: brief ? short(wordText(word)) : wordText(word), title: word });

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
      add(el("span", {}, "slot ", slotValue(slot)), slotValue(old.storage?.[slot] ?? EMPTY_SLOT, false),
        slotValue(fresh.storage?.[slot] ?? EMPTY_SLOT, false));
    }
  }
  return rows;
}

/** The difference as a table. */
export function differenceTable(told) {
  const rows = changesOf(told);
  if (!rows.length) return el("p.dim", { text: "Nothing changed." });
  let last = null;
  return table("State before and after", ["Account", "What", "Before", "After"],
    rows.map(({ address, what, from, to }) => {
      const shown = address === last ? "" : addressLink(address);
      last = address;
      return [shown, what, from, to];
    }));
}
