// The overview: the block under construction, lateness, newest blocks and transactions, accounts.

import { accountsCard } from "./accounts.js";
import { card, el, keyed, say } from "./dom.js";
import { age, count, gwei, num, short } from "./format.js";
import { blockLink, fromTo, transactionLink } from "./links.js";
import { outcomeMark, valueMoved } from "./lists.js";
import { readContracts } from "./contracts.js";
import { SAMPLES, hasFailed, lateness, listen, live, slicesOfBlock } from "./live.js";
import { learned, methodName } from "./names.js";
import { latenessPlot } from "./plot.js";

const TRANSACTIONS = 12;
const MOST_CELLS = 24; // of a block's slices

/** Draw the overview into `main` and keep it current; returns a function that stops this. */
export function home(main) {
  const paused = el("button.quiet", { type: "button", "aria-pressed": "false", text: "Pause" });
  const tiles = el("ul.tiles");
  const construction = constructionCard();
  const blocks = el("ol.rows");
  const transactions = el("ol.rows");
  const none = el("p.dim", { text: "No transactions in the newest blocks." });
  const accounts = accountsCard({ most: 10 });
  main.append(
    el("div.title", {}, el("h1", { text: "Overview" }), paused),
    tiles, construction.element,
    el("div.columns", {},
      card("Newest blocks", blocks, el("p.more", {}, el("a", { href: "#/blocks", text: "All blocks" }))),
      card("Newest transactions", legend(), transactions, none,
        el("p.more", {}, el("a", { href: "#/transactions", text: "All transactions" })))),
    accounts.element);
  paused.addEventListener("click", () => {
    const on = paused.getAttribute("aria-pressed") !== "true";
    paused.setAttribute("aria-pressed", on);
    paused.textContent = on ? "Go on" : "Pause";
  });
  let naming = 0; // how many times names became known
  const draw = () => {
    if (paused.getAttribute("aria-pressed") === "true") return;
    drawTiles(tiles);
    construction.draw();
    const most = Math.max(1, ...live.blocks.map((block) => num(block.gasUsed)));
    keyed(blocks, live.blocks, (block) => block.hash, blockRow, (row, block) => {
      row.querySelector("i").style.width = `${(100 * num(block.gasUsed)) / most}%`;
    });
    const newest = newestTransactions();
    none.hidden = newest.length > 0;
    // a row is created again when its outcome or a name becomes known
    const key = ({ transaction: { hash } }) => `${hash} ${hasFailed(hash)} ${naming}`;
    keyed(transactions, newest, key, transactionRow,
      (row, { sealed }) => row.setAttribute("data-state", sealed ? "sealed" : "slice"));
    readContracts(newest.map(({ transaction }) => transaction.to)).catch(() => {}); // the header shows it
    accounts.draw();
  };
  const renamed = () => {
    naming++;
    draw();
  };
  learned.addEventListener("names", renamed);
  const end = listen(draw);
  return () => {
    learned.removeEventListener("names", renamed);
    end();
  };
}

const legend = () => el("p.legend", {}, el("span.slice", { text: "pre-confirmed" }), " ",
  el("span.sealed", { text: "in a block" }));

function drawTiles(tiles) {
  const [head] = live.blocks;
  const { pool } = live;
  keyed(tiles, [
    ["Block", head ? count(num(head.number)) : "…"],
    ["Base fee", head?.baseFeePerGas ? gwei(head.baseFeePerGas) : "…"],
    ["Pool", pool ? `${count(pool.pending)} ready${pool.queued ? `, ${count(pool.queued)} queued` : ""}` : "unknown"],
    ["Chain", live.chain ? String(live.chain.id) : "…"],
  ], ([name]) => name,
  ([name]) => el("li", {}, el("span", { text: name }), el("b")),
  (tile, [, value]) => say(tile.lastChild, value));
}

/** The block under construction: a cell for each slice, and how late slices are. */
function constructionCard() {
  const title = el("h2", { text: "Block under construction" });
  const summary = el("p.dim");
  const cells = el("ol.cells", { "aria-label": "Slices" });
  const plot = latenessPlot();
  const element = el("section.card.construction", { "aria-label": "Block under construction" },
    el("div.split", {}, el("div", {}, title, summary, cells),
      el("div", {}, el("h2", { text: "Lateness of slices" }), plot)));
  const draw = () => {
    const { pending, slices } = live;
    element.hidden = !live.sliced || (!pending && !live.lateness.length);
    plot.draw(lateness(), SAMPLES, live.interval);
    if (!pending) return;
    title.replaceChildren("Block ", blockLink(pending.number), " under construction");
    const size = pending.transactions.length;
    const every = live.interval ? ` · a slice every ${Math.round(live.interval)} ms` : "";
    say(summary, `${count(size)} ${size === 1 ? "transaction" : "transactions"} · ${count(num(pending.gasUsed))} gas${every}`);
    const closed = slices.filter(({ opened }) => !opened);
    const capacity = Math.min(MOST_CELLS, Math.max(slicesOfBlock() ?? closed.length, closed.length, 1));
    const from = Math.max(0, closed.length - capacity);
    const shown = Array.from({ length: capacity }, (_, i) => ({ i, slice: closed[from + i] }));
    keyed(cells, shown, ({ i }) => i, () => el("li"), (cell, { i, slice }) => {
      cell.setAttribute("data-state", slice ? (slice.transactions ? "full" : "empty") : "due");
      say(cell, slice?.transactions ? count(slice.transactions) : "");
      cell.title = slice ? `Slice ${from + i + 1}: ${slice.transactions} transactions, ${count(slice.gas)} gas` : "not there yet";
    });
  };
  return { element, draw };
}

function newestTransactions() {
  const pending = (live.pending?.transactions ?? []).slice(-TRANSACTIONS).reverse()
    .map((transaction) => ({ transaction, sealed: false }));
  const mined = live.blocks.flatMap((block) => block.transactions.slice(-TRANSACTIONS).reverse())
    .map((transaction) => ({ transaction, sealed: true }));
  const seen = new Set();
  return [...pending, ...mined]
    .filter(({ transaction: { hash } }) => !seen.has(hash) && seen.add(hash))
    .slice(0, TRANSACTIONS);
}

function blockRow(block) {
  const size = block.transactions.length;
  const share = (100 * num(block.gasUsed)) / Math.max(num(block.gasLimit), 1);
  const gauge = el("span.gauge", { title: `${count(num(block.gasUsed))} gas used, ${share.toFixed(1)} % of the limit` }, el("i"));
  return el("li", {}, el("b", {}, blockLink(block.number)),
    el("code.dim.wide", { text: short(block.hash) }),
    el("span.right", { text: size === 1 ? "1 transaction" : size ? `${count(size)} transactions` : "empty" }),
    gauge, el("span.dim.when", {}, age(num(block.timestamp))));
}

/** A row of a transaction. */
export function transactionRow({ transaction }) {
  return el("li.transaction", {}, outcomeMark(transaction.hash), transactionLink(transaction.hash),
    fromTo(transaction), el("span.chip", { text: methodName(transaction) }),
    el("span.right", {}, valueMoved(transaction)));
}
