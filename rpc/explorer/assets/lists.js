// The pages of all blocks and of all transactions, and what their tables show.

import { readContracts } from "./contracts.js";
import { card, el, table } from "./dom.js";
import { amount, big, count, moment, num, short } from "./format.js";
import { blockLink, fromTo, transactionLink } from "./links.js";
import { hasFailed, readOutcomes } from "./live.js";
import { decodeInput, learned, methodName } from "./names.js";
import { call } from "./rpc.js";
import { isAmount, shortAmount } from "./tokens.js";

const BLOCKS = 25; // of a page
// least transactions of a page; a page ends with a whole block, so it may have more
const TRANSACTIONS = 25;
const AT_ONCE = 40; // blocks requested in one batch
const MOST_SEARCHED = 1000; // blocks that are searched for a page of transactions

/** A mark for success or failure; empty while the outcome is unknown. */
export function outcomeMark(hash) {
  const failed = hasFailed(hash);
  if (failed === undefined) return el("span.outcome");
  return el(failed ? "span.outcome.bad" : "span.outcome.good", {
    text: failed ? "✕" : "✓", title: failed ? "failed" : "success",
    role: "img", "aria-label": failed ? "failed" : "success" });
}

/** The amount that a transaction transfers: ether, else that of a known token function. */
export function valueMoved(transaction) {
  if (big(transaction.value)) return amount(transaction.value, 4);
  const found = transaction.to && decodeInput(transaction.to, transaction.input);
  const at = found ? found.entry.inputs.findIndex((input) => isAmount(found.entry, input)) : -1;
  return at < 0 ? "" : shortAmount(found.values[at], transaction.to);
}

/** A table of {transaction, block}. */
export const transactionTable = (label, list) =>
  table(label, ["Result", "Hash", "Function", "Block", "Time", "From and to", "Value"],
    list.map(({ transaction, block }) => [outcomeMark(transaction.hash), transactionLink(transaction.hash),
      el("span.chip", { text: methodName(transaction) }), blockLink(block.number),
      moment(num(block.timestamp)), fromTo(transaction), valueMoved(transaction)]));

const hex = (number) => `0x${number.toString(16)}`;

/** The blocks from a number down, at most `most`; those that the node does not have are left out. */
async function blocksDown(from, most) {
  const numbers = Array.from({ length: Math.min(most, from + 1) }, (_, i) => hex(from - i));
  return (await Promise.all(numbers.map((n) => call("eth_getBlockByNumber", n, true)))).filter(Boolean);
}

/**
 * Returns the number of a page's first block (`id`, or else the newest block), and of the newest
 * block.
 */
async function start(id) {
  const head = num(await call("eth_blockNumber"));
  return [/^\d{1,15}$/.test(id) ? Math.min(Number(id), head) : head, head];
}

/**
 * Links to the previous and the next page; null if there are none. `tag`: tag of the element around
 * the links.
 */
function pager(tag, name, { newer, older, back = "← Newer" }) {
  if (newer === null && older === null) return null;
  return el(`${tag}.buttons`, { "aria-label": tag === "nav" && "Pages of this list" },
    newer !== null && el("a.button", { href: `#/${name}/${newer}`, text: back }),
    older !== null && el("a.button", { href: `#/${name}/${older}`, text: "Older →" }));
}

/** Draw a page of blocks, from the block with the number `id` down. */
export async function blocks(main, id) {
  const [from, head] = await start(id);
  const list = await blocksDown(from, BLOCKS);
  const last = from - BLOCKS;
  const newer = from < head ? Math.min(head, from + BLOCKS) : null;
  const pages = (tag) => pager(tag, "blocks", { newer, older: last >= 0 ? last : null });
  main.append(
    el("div.title", {}, el("h1", { text: "Blocks" }), pages("nav")),
    card(`Blocks ${count(from)} to ${count(Math.max(0, last + 1))}`,
      table("Blocks", ["Block", "Hash", "Time", "Transactions", "Gas used", "Base fee in wei"],
        list.map((block) => [blockLink(block.number), el("code", { text: short(block.hash) }),
          moment(num(block.timestamp)), count(block.transactions.length), count(num(block.gasUsed)),
          block.baseFeePerGas ? count(block.baseFeePerGas) : ""])), pages("p") ?? ""));
  return () => {};
}

/** Draw a page of transactions, newest first, from the block with the number `id` down. */
export async function transactions(main, id) {
  const [from, head] = await start(id);
  const list = [];
  let next = from;
  while (next >= 0 && list.length < TRANSACTIONS && from - next < MOST_SEARCHED) {
    const read = await blocksDown(next, AT_ONCE);
    const used = [];
    for (const block of read) {
      if (list.length >= TRANSACTIONS) break;
      used.push(block);
      list.push(...[...block.transactions].reverse().map((transaction) => ({ transaction, block })));
      next = num(block.number) - 1;
    }
    await readOutcomes(used);
    if (!read.length) next = -1;
  }
  await readContracts(list.map(({ transaction }) => transaction.to));
  const pages = (tag) => pager(tag, "transactions", {
    newer: from < head ? "" : null, older: next >= 0 ? next : null, back: "← Newest" });
  const shown = el("div");
  const draw = () => shown.replaceChildren(list.length ? transactionTable("Transactions", list)
    : el("p.dim", { text: "These blocks have no transactions." }));
  draw();
  learned.addEventListener("names", draw);
  main.append(
    el("div.title", {}, el("h1", { text: "Transactions" }), pages("nav")),
    card(`Blocks ${count(from)} to ${count(next + 1)}`, shown, pages("p") ?? ""));
  return () => learned.removeEventListener("names", draw);
}
