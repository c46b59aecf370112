// The current state of the node: slices and blocks, how late slices are, the size of the pool.

import { call, subscribe, tryCall, url } from "./rpc.js";
import { num } from "./format.js";

export const SAMPLES = 150; // slices in the plot of lateness
export const BLOCKS = 12; // newest blocks that are kept
const POLL = 1000; // milliseconds, on a node without subscriptions
const PULL = 200; // least milliseconds between polls of the chain
const POOL = 1000;
const GAPS = 12; // between slices, from which their interval is estimated
const FAR = 0.3; // share by which the median gap may differ from the interval that is known
// share by which the median gap may differ from the block time divided by the number of slices
const FAR_FROM_BLOCK = 0.05;
const OUTCOMES = 5000; // transactions whose outcome is remembered
const IS_LOCAL = /^(localhost|127\..*|\[::1\])$/.test(new URL(url).hostname);

export const live = {
  online: false,
  fault: "",
  sliced: false, // the node publishes slices
  chain: null, // id, client
  blocks: [], // newest first, with transactions
  pending: null, // the block under construction, as its newest slice has it
  slices: [], // of the pending block: {index, transactions, gas, late}
  usual: null, // how many slices the last block had
  interval: null, // milliseconds from slice to slice
  lateness: [], // milliseconds after the due time, oldest first
  pool: null, // {pending, queued}
};

const outcomes = new Map(); // hash -> whether the transaction failed

/** Whether a transaction failed; undefined while that is not known. */
export const hasFailed = (hash) => outcomes.get(hash);

/** Remember the outcomes in receipts, or in objects with the members of a receipt. */
export function learnOutcomes(receipts) {
  for (const { hash, transactionHash, status } of receipts ?? []) {
    if (status !== undefined) outcomes.set(transactionHash ?? hash, !num(status));
  }
  for (const hash of outcomes.keys()) {
    if (outcomes.size <= OUTCOMES) break;
    outcomes.delete(hash);
  }
}

const listeners = new Set();
let scheduled = false;

/** Call `draw` soon after each change, at most once a frame; returns a function that stops this. */
export function listen(draw) {
  listeners.add(draw);
  draw();
  return () => listeners.delete(draw);
}

function changed() {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(() => {
    scheduled = false;
    for (const draw of [...listeners]) draw();
  });
}

/** Start the subscriptions and the polls. */
export function start() {
  const topics = {
    newHeads: pullSoon, newFlashblocks: sliceCame,
    newFlashblockTransactions: (transaction) => learnOutcomes([transaction]),
  };
  let poll = setInterval(pullSoon, POLL);
  pullSoon();
  subscribe(topics, { newFlashblockTransactions: true }, (accepted) => {
    clearInterval(poll);
    live.sliced = accepted?.includes("newFlashblocks") ?? false;
    if (!live.sliced) dropSlices();
    if (!accepted?.includes("newHeads")) poll = setInterval(pullSoon, POLL);
    pullSoon();
  });
  setInterval(readPool, POOL);
  addEventListener("visibilitychange", pullSoon);
}

function dropSlices() {
  live.pending = null;
  live.slices = [];
  live.lateness = [];
  live.interval = live.usual = null;
}

// --- blocks ---

let lastPull = 0;
let pulling = false;
let again = false;

function pullSoon() {
  if (document.hidden && live.online) return; // the page is hidden
  if (pulling) {
    again = true;
    return;
  }
  pulling = true;
  setTimeout(pull, Math.max(0, lastPull + PULL - Date.now()));
}

async function pull() {
  lastPull = Date.now();
  again = false;
  try {
    live.chain ??= await readChain();
    await readBlocks();
    live.online = true;
    live.fault = "";
  } catch (error) {
    live.online = false;
    live.fault = error.message;
  }
  pulling = false;
  changed();
  if (again) pullSoon();
}

async function readChain() {
  const [id, client] = await Promise.all([call("eth_chainId"), tryCall("web3_clientVersion")]);
  return { id: num(id), client };
}

async function readBlocks() {
  const head = await call("eth_getBlockByNumber", "latest", true);
  const newest = num(head.number);
  const known = new Map(live.blocks.map((block) => [num(block.number), block]));
  const joined = known.get(newest - 1)?.hash === head.parentHash || known.get(newest)?.hash === head.hash;
  // the new head does not extend the known blocks: after a gap, at the start, or on a different
  // branch
  if (!joined) known.clear();
  known.set(newest, head);
  const wanted = [];
  for (let n = newest; n >= 0 && n > newest - BLOCKS; n--) if (!known.has(n)) wanted.push(n);
  const read = await Promise.all(
    wanted.map((n) => call("eth_getBlockByNumber", `0x${n.toString(16)}`, true)));
  for (const block of read) if (block) known.set(num(block.number), block);
  await readOutcomes([head, ...read]);
  live.blocks = [...known.values()]
    .filter((block) => num(block.number) <= newest)
    .sort((a, b) => num(b.number) - num(a.number))
    .slice(0, BLOCKS);
  if (live.pending && num(live.pending.number) <= newest) dropPending();
}

/** Read the receipts of blocks with transactions whose outcome is not known. */
export async function readOutcomes(blocks) {
  const wanted = blocks.filter((block) => block?.transactions.some(({ hash }) => !outcomes.has(hash)));
  const receipts = await Promise.all(wanted.map(({ hash }) => tryCall("eth_getBlockReceipts", hash)));
  receipts.forEach(learnOutcomes);
}

function dropPending() {
  live.pending = null;
  live.slices = [];
}

// --- slices ---

let due = null; // when the newest slice was due, in milliseconds since 1970
let arrivals = [];

function sliceCame(block) {
  const now = performance.timeOrigin + performance.now();
  const opened = block.number !== live.pending?.number || block.parentHash !== live.pending.parentHash;
  const before = opened ? null : live.pending;
  if (opened) {
    // the page has seen all slices of the block
    if (live.slices[0]?.opened) live.usual = live.slices.length - 1;
    live.slices = [];
  }
  live.pending = block;
  if (!opened) arrivals = [...arrivals, now].slice(-GAPS - 1);
  // the first slice of a block comes together with the last slice of the block before, so it has no
  // lateness
  const late = opened ? null : lateBy(now);
  if (late !== null) live.lateness = [...live.lateness, late].slice(-SAMPLES);
  const slice = {
    late,
    opened,
    transactions: block.transactions.length - (before?.transactions.length ?? 0),
    gas: num(block.gasUsed) - num(before?.gasUsed),
  };
  live.slices = [...live.slices, slice].slice(-SAMPLES);
  live.online = true;
  changed();
}

/** How many milliseconds after its due time a slice came; null while the interval is not known. */
function lateBy(now) {
  const interval = intervalOf(arrivals, live.interval, live.usual ? blockTime() / live.usual : 0);
  if (interval !== live.interval) {
    due = null; // slices are due at multiples of the new interval
    live.lateness = [];
  }
  live.interval = interval;
  if (!interval) return null;
  if (due !== null) due += interval;
  const late = due === null ? NaN : now - due;
  if (!(late > -interval / 2 && late < 4 * interval)) {
    due = Math.round(now / interval) * interval; // slices are due at multiples of their interval
  }
  return now - due;
}

/**
 * The samples of lateness, none below zero. The clock of this machine is the node's own only on
 * loopback: elsewhere the earliest slice counts as punctual.
 */
export function lateness() {
  const base = IS_LOCAL ? 0 : Math.min(...live.lateness);
  return live.lateness.map((late) => Math.max(0, late - base));
}

/**
 * The interval of slices that arrived at `times`, in milliseconds: `exact`, the block time divided
 * by the number of slices, if the median gap confirms it. Timestamps of blocks may be ahead of the
 * clock, and then their difference is not the block time. Else the interval that is `known`, else
 * the median gap rounded to 50 ms (10 ms below 75 ms).
 */
export function intervalOf(times, known, exact) {
  if (times.length < GAPS) return known;
  const gaps = times.slice(1).map((time, i) => time - times[i]).sort((a, b) => a - b);
  const usual = gaps[gaps.length >> 1];
  const isNear = (interval, share) => interval && Math.abs(interval - usual) < share * interval;
  if (isNear(exact, FAR_FROM_BLOCK)) return exact;
  if (isNear(known, FAR)) return known;
  return usual < 75 ? Math.max(10, Math.round(usual / 10) * 10) : Math.round(usual / 50) * 50;
}

/** Milliseconds between the two newest blocks; 0 if unknown, or less than a second. */
function blockTime() {
  const [head, parent] = live.blocks;
  return parent ? 1000 * (num(head.timestamp) - num(parent.timestamp)) : 0;
}

/** How many slices a block of this node has, as far as it is known; null if it is not. */
export function slicesOfBlock() {
  if (live.usual) return live.usual;
  return live.interval && blockTime() > live.interval ? Math.round(blockTime() / live.interval) : null;
}

// --- pool ---

async function readPool() {
  if (document.hidden) return;
  try {
    const status = await tryCall("txpool_status");
    live.pool = status && { pending: num(status.pending), queued: num(status.queued) };
    changed();
  } catch {
    // `pull` reports that the node is away
  }
}
