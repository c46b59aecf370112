// Links to blocks, transactions and addresses, and values in which addresses are links.

import { signatureOf } from "./abi.js";
import { copier, el, svg } from "./dom.js";
import { checksum, count, num, short } from "./format.js";
import { decodeInput, nameOf } from "./names.js";
import { isAmount, tokenAmount } from "./tokens.js";

/** A mark in two colours that tells addresses apart at a glance. */
function mark(address) {
  const at = (from) => parseInt(address.slice(from, from + 4), 16) % 360;
  return svg("svg", { viewBox: "0 0 10 10", class: "dot-of", "aria-hidden": "true" },
    svg("circle", { cx: 5, cy: 5, r: 5, fill: `hsl(${at(2)} 55% 52%)` }),
    svg("path", { d: "M5 0a5 5 0 0 1 0 10z", fill: `hsl(${at(10)} 60% 40%)` }));
}

const MOST_SHOWN = 4000; // values of one call, those of its inner calls included
const CALL_COST = 20; // number of values as which an inner call counts, because it is decoded too
const DEEPEST_CALL = 8; // inner calls in each other

/** A link to an address, with its name if it has one. */
export function addressLink(address, { full = false } = {}) {
  const whole = checksum(address);
  const name = nameOf(address);
  const shown = full ? whole : name ?? short(whole);
  return el("a.address", { href: `#/address/${whole}`, title: name ? `${name} ${whole}` : whole },
    mark(whole.toLowerCase()), el(name && !full ? "span" : "code", { text: shown }),
    full && name ? el("small", { text: name }) : null);
}

/** A link to a transaction. */
export const transactionLink = (hash, { full = false } = {}) =>
  el("a", { href: `#/tx/${hash}`, title: hash }, el("code", { text: full ? hash : short(hash) }));

/** A link to a block, by number or hash. */
export const blockLink = (block) => {
  const text = block.length === 66 ? short(block) : count(num(block));
  return el("a", { href: `#/block/${block.length === 66 ? block : num(block)}`, title: block },
    block.length === 66 ? el("code", { text }) : text);
};

/** The sender and what a transaction calls, pays or creates. */
export const fromTo = (transaction) =>
  el("span.route", {}, addressLink(transaction.from), el("span", { text: "→", "aria-label": "to" }),
    transaction.to ? addressLink(transaction.to) : el("em", { text: "new contract" }));

/** A hash or bytes that can be copied. */
export const hexValue = (text, what) => el("span.hex", {}, el("code", { text }), copier(text, what));

const wholeBudget = () => ({ left: MOST_SHOWN, deep: DEEPEST_CALL });

/**
 * A decoded value: an address as a link; lists, tuples and calls nested; all else as text.
 * `budget`: how many values are still shown, and how deep inner calls may be.
 */
export function valueOf(input, value, budget = wholeBudget()) {
  if (budget.left-- <= 0) return el("span.dim", { text: "…" });
  if (Array.isArray(value)) {
    const inner = /\]$/.test(input.type)
      ? value.map((item, i) => [`${i}`, { ...input, type: input.type.replace(/\[\d*\]$/, "") }, item])
      : value.map((item, i) => [input.components[i].name || `${i}`, input.components[i], item]);
    if (!inner.length) return el("code", { text: "[]" });
    const shown = inner.slice(0, budget.left + 1);
    return el("ol.nested", {}, shown.map(([name, of, item]) =>
      el("li", {}, el("span.dim", { text: `${name} ` }), valueOf(of, item, budget))));
  }
  if (input.type === "address") return addressLink(value, { full: true });
  if (input.type === "string") return el("q", { text: value });
  if (input.type === "bytes") return callOf(value, budget) ?? bytesOf(value, input.name || "bytes");
  return el("code", { text: typeof value === "bigint" ? value.toLocaleString("en") : String(value) });
}

/**
 * Shows bytes as a call if they are the input of a known function. Null for other bytes, or if the
 * budget is used up.
 */
function callOf(bytes, budget) {
  if (budget.left < CALL_COST || !budget.deep) return null;
  budget.left -= CALL_COST;
  const found = decodeInput(null, bytes);
  if (!found) return null;
  budget.deep--;
  const parameters = parametersOf(found.entry.inputs, found.values, budget);
  budget.deep++;
  return el("details.inner", {}, el("summary", {}, el("code", { text: signatureOf(found.entry) })), parameters);
}

/** Names, types and values of decoded parameters; null for none. */
export function parametersOf(inputs, values, budget = wholeBudget(), shown = valueOf) {
  if (!inputs.length) return null;
  return el("dl.parameters", {}, inputs.map((input, i) => el("div", {},
    el("dt", {}, input.name || `#${i}`, " ", el("small", { text: input.type })),
    el("dd", {}, shown(input, values[i], budget)))));
}

/** The inputs of a function or an event of a contract; amounts of a token have its unit. */
export const inputsOf = ({ entry, values }, address) =>
  parametersOf(entry.inputs, values, wholeBudget(), (input, value, budget) =>
    (isAmount(entry, input) ? tokenAmount(value, address) : valueOf(input, value, budget)));

/** Long bytes: their size, and all of them on demand. */
export function bytesOf(hex, what) {
  if (hex.length <= 74) return hexValue(hex, what);
  return el("details", {}, el("summary", { text: `${count((hex.length - 2) / 2)} bytes` }),
    el("div.bytes", {}, copier(hex, what), el("code", { text: hex })));
}
