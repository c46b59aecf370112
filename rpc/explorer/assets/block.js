// The page of a block: its header, its transactions with their outcome.

import { readContracts } from "./contracts.js";
import { card, el, facts, table } from "./dom.js";
import { big, count, gwei, moment, num } from "./format.js";
import { addressLink, blockLink, bytesOf, fromTo, hexValue, transactionLink } from "./links.js";
import { outcomeMark, valueMoved } from "./lists.js";
import { learnOutcomes, listen, live } from "./live.js";
import { methodName } from "./names.js";
import { call, tryCall } from "./rpc.js";

const MOST = 500; // transactions that are shown

const selector = (id) => (/^\d+$/.test(id) ? `0x${BigInt(id).toString(16)}` : id);
const isHash = (id) => /^0x[0-9a-fA-F]{64}$/.test(id);

async function read(id) {
  if (isHash(id)) return call("eth_getBlockByHash", id, true);
  const found = await call("eth_getBlockByNumber", selector(id), true);
  if (found) return found;
  const pending = await tryCall("eth_getBlockByNumber", "pending", true);
  return pending?.number === selector(id) ? { ...pending, isPending: true } : null;
}

/** Draw the block with a number, hash or tag; returns a function that stops its updates. */
export async function block(main, id) {
  const found = await read(id);
  if (!found) {
    main.append(el("h1", { text: "No such block" }), el("p", { text: `The chain has no block ${id}.` }));
    return waiting(main, id);
  }
  const receipts = found.isPending ? null : await tryCall("eth_getBlockReceipts", found.hash);
  learnOutcomes(receipts);
  await readContracts(found.transactions.slice(0, MOST).map(({ to }) => to));
  const n = num(found.number);
  main.append(
    el("div.title", {}, el("h1", { text: `Block ${count(n)}` }),
      el("span.chip", { "data-tone": found.isPending ? "wait" : "good", text: found.isPending ? "under construction" : "canonical" }),
      el("nav.buttons", { "aria-label": "Neighbours" },
        n > 0 ? el("a.button", { href: `#/block/${n - 1}`, text: "← Previous" }) : null,
        el("a.button", { href: `#/block/${n + 1}`, text: "Next →" }))),
    card("Header", headerFacts(found)),
    transactionsCard(found, receipts));
  return found.isPending ? waiting(main, id) : () => {};
}

/** Draw the page again when the block appears or grows. */
function waiting(main, id) {
  const wanted = Number(id);
  let [size, number] = [live.pending?.transactions.length, live.pending?.number];
  return listen(() => {
    const isThere = live.blocks.some((block) => num(block.number) === wanted);
    const grew = num(live.pending?.number) === wanted && live.pending
      && (live.pending.number !== number || live.pending.transactions.length !== size);
    [size, number] = [live.pending?.transactions.length, live.pending?.number];
    if (isThere || grew) main.dispatchEvent(new Event("stale"));
  });
}

function headerFacts(found) {
  const share = num(found.gasUsed) / Math.max(num(found.gasLimit), 1);
  return facts([
    ["Hash", big(found.hash ?? 0) ? hexValue(found.hash, "hash") : null],
    ["Parent", num(found.number) ? blockLink(found.parentHash) : null],
    ["Time", moment(num(found.timestamp))],
    ["Gas used", `${count(num(found.gasUsed))} of ${count(num(found.gasLimit))} (${(100 * share).toFixed(1)} %)`],
    ["Base fee", found.baseFeePerGas ? gwei(found.baseFeePerGas) : null],
    ["Blob gas", num(found.blobGasUsed) ? count(num(found.blobGasUsed)) : null],
    ["Fee recipient", addressLink(found.miner)],
    ["State root", big(found.stateRoot ?? 0) ? hexValue(found.stateRoot, "state root") : null],
    ["Withdrawals", found.withdrawals?.length ? count(found.withdrawals.length) : null],
    ["Extra data", found.extraData !== "0x" ? bytesOf(found.extraData, "extra data") : null],
    ["Size", found.size ? `${count(num(found.size))} bytes` : null],
  ]);
}

function transactionsCard(found, receipts) {
  const all = found.transactions;
  const byHash = new Map((receipts ?? []).map((receipt) => [receipt.transactionHash, receipt]));
  const title = `${count(all.length)} ${all.length === 1 ? "transaction" : "transactions"}`;
  if (!all.length) return card(title, el("p.dim", { text: "The block is empty." }));
  return card(title,
    table("Transactions", ["Result", "Hash", "Function", "From and to", "Value", "Gas"],
      all.slice(0, MOST).map((transaction) => {
        const receipt = byHash.get(transaction.hash);
        return [outcomeMark(transaction.hash), transactionLink(transaction.hash),
          el("span.chip", { text: methodName(transaction) }), fromTo(transaction),
          valueMoved(transaction), receipt ? count(num(receipt.gasUsed)) : ""];
      })),
    all.length > MOST ? el("p.dim", { text: `The first ${MOST} are shown.` }) : null);
}
