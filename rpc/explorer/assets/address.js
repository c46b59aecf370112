// The page of an address: balance, code, functions, storage that transactions touched, history.

import { faucet, newest } from "./accounts.js";
import { contractCard } from "./contract.js";
import { slotName, slotValue } from "./difference.js";
import { readContracts } from "./contracts.js";
import { card, copier, el, facts, table } from "./dom.js";
import { amount, big, checksum, count, fixed, num, sizeOf } from "./format.js";
import { hexValue, transactionLink } from "./links.js";
import { live, readOutcomes } from "./live.js";
import { transactionTable } from "./lists.js";
import { learned, nameOf } from "./names.js";
import { call, callAlone, tryCall } from "./rpc.js";
import { tokenAt, value } from "./tokens.js";

const WINDOW = 128; // blocks that are searched together for the history
const AT_ONCE = 32; // blocks requested in one batch
const MOST_TRACED = 20; // transactions whose storage accesses are read
const MOST_SLOTS = 200;
const DELEGATION = /^0xef0100([0-9a-f]{40})$/; // EIP-7702

/** Draw an address. */
export async function address(main, given) {
  const target = checksum(given);
  const at = newest();
  const [balance, nonce, code] = await Promise.all([call("eth_getBalance", target, at),
    call("eth_getTransactionCount", target, at), call("eth_getCode", target, at)]);
  const isContract = code !== "0x";
  if (isContract) await readContracts([target]);
  const delegate = code.match(DELEGATION)?.[1];
  const name = nameOf(target);
  const heading = el("div.title", {}, el("h1", { text: name ?? (isContract ? "Contract" : "Account") }),
    el("span.chip", { text: delegate ? "delegated account" : isContract ? "contract" : "account" }),
    el("p.hash", {}, el("code", { text: target }), copier(target, "address")));
  const token = isContract ? await tokenFacts(target) : [];
  const account = card("Account", facts([
    ["Balance", amount(balance, 18)], ["Nonce", count(num(nonce))], ...token,
    ["Delegates to", delegate ? hexValue(`0x${delegate}`, "address") : null],
    ["Code", isContract ? `${count(sizeOf(code))} bytes` : "none"],
  ]), await faucet(target));
  const storage = card("Storage", el("p.dim", { text: "Reading the history…" }));
  const history = historyCard(target, (list) => storageTouched(storage, target, list));
  if (isContract) {
    const bytes = card("Code", el("details", {}, el("summary", { text: `${count(sizeOf(code))} bytes` }),
      el("div.bytes", {}, copier(code, "code"), el("code", { text: code }))));
    main.append(heading, el("div.columns", {}, el("div.parts", {}, account, storage, bytes), contractCard(target)),
      history.element);
  } else main.append(heading, account, history.element);
  return history.end;
}

/** Symbol, decimals and supply of a token. */
async function tokenFacts(address) {
  const [token, supply] = await Promise.all([tokenAt(address), value(address, "0x18160ddd", "uint256")]);
  if (!token) return [];
  const { symbol, decimals } = token;
  return [["Token", [el("q", { text: symbol }), ` · ${decimals} decimals`]],
    ["Supply", supply === null ? null : el("span.amount", {
      title: `${supply.toLocaleString("en")} units`, text: `${fixed(supply, decimals)} ${symbol}` })]];
}

// --- history ---

/** Transactions from, to or with logs of an address in blocks of a window, newest first. */
async function search(address, last) {
  const first = Math.max(0, last - WINDOW + 1);
  const numbers = Array.from({ length: last - first + 1 }, (_, i) => `0x${(last - i).toString(16)}`);
  const lower = address.toLowerCase();
  const logged = new Set(((await tryCall("eth_getLogs", { address, fromBlock: numbers.at(-1),
    toBlock: numbers[0] })) ?? []).map((log) => log.transactionHash));
  const found = [];
  for (let at = 0; at < numbers.length; at += AT_ONCE) {
    const blocks = await Promise.all(numbers.slice(at, at + AT_ONCE)
      .map((n) => call("eth_getBlockByNumber", n, true)));
    for (const block of blocks.filter(Boolean)) found.push(...(await within(block, lower, logged)));
  }
  await readOutcomes([...new Set(found.map(({ block }) => block))]);
  await readContracts(found.map(({ transaction }) => transaction.to));
  return { found, first };
}

async function within(block, lower, logged) {
  const all = [...block.transactions].reverse();
  const creations = all.filter(({ to }) => !to);
  const receipts = await Promise.all(creations.map(({ hash }) => tryCall("eth_getTransactionReceipt", hash)));
  const created = new Set(receipts.filter((r) => r?.contractAddress?.toLowerCase() === lower).map((r) => r.transactionHash));
  return all.filter((t) => t.from.toLowerCase() === lower || t.to?.toLowerCase() === lower
    || logged.has(t.hash) || created.has(t.hash)).map((transaction) => ({ transaction, block }));
}

function historyCard(address, changed) {
  const status = el("p.dim", { role: "status", text: "Reading the newest blocks…" });
  const shown = el("div");
  const more = el("button", { type: "button", text: "Look further back" });
  more.hidden = true;
  const element = card("History", shown, status, more);
  let list = [];
  let last = null;
  const draw = () => shown.replaceChildren(list.length ? transactionTable("History", list) : "");
  const look = async () => {
    more.disabled = true;
    try {
      const head = num(await call("eth_blockNumber"));
      const pending = last === null ? live.pending : null;
      if (pending) list = await within(pending, address.toLowerCase(), new Set());
      const { found, first } = await search(address, last ?? head);
      const seen = new Set(found.map(({ transaction }) => transaction.hash));
      list = [...list.filter(({ transaction }) => !seen.has(transaction.hash)), ...found];
      last = first - 1;
      more.hidden = last < 0;
      status.textContent = `${count(list.length)} transactions from, to or with logs of this address in blocks ${count(first)} to ${count(head)}.`;
      draw();
      changed(list);
    } catch (error) {
      status.textContent = error.message;
    }
    more.disabled = false;
  };
  more.addEventListener("click", look);
  learned.addEventListener("names", draw); // functions may have names now
  look();
  return { element, end: () => learned.removeEventListener("names", draw) };
}

// --- storage ---

/** Fill the card of storage with the slots that the newest transactions read or wrote. */
async function storageTouched(element, address, list) {
  const lower = address.toLowerCase();
  const traced = list.slice(0, MOST_TRACED);
  const traces = await Promise.all(traced.map(({ transaction }) =>
    callAlone("debug_traceTransaction", transaction.hash, { tracer: "prestateTracer" }).catch(() => null)));
  const by = new Map();
  traces.forEach((trace, i) => {
    for (const slot of Object.keys(trace?.[lower]?.storage ?? {})) {
      if (!by.has(slot)) by.set(slot, traced[i].transaction.hash);
    }
  });
  const slots = [...by.keys()].sort((a, b) => (big(a) < big(b) ? -1 : 1)).slice(0, MOST_SLOTS);
  const values = await Promise.all(slots.map((slot) => tryCall("eth_getStorageAt", address, slot, newest())));
  const rows = slots.map((slot, i) => [slotName(slot), values[i] ? slotValue(values[i]) : "", transactionLink(by.get(slot))]);
  const refused = traces.length && traces.every((trace) => trace === null);
  const text = refused ? "The node gives no traces."
    : `Slots that the newest ${count(traced.length)} of the transactions below read or wrote.`;
  element.replaceChildren(element.firstChild, el("p.dim", { text }),
    rows.length ? table("Storage", ["Slot", "Value now", "Last touched by"], rows) : el("p.dim", { text: "None." }),
    slotForm(address));
}

function slotForm(address) {
  const slot = el("input", { "aria-label": "Slot", placeholder: "slot, as 0 or 0x…", spellcheck: "false" });
  const output = el("output", { "aria-live": "polite" });
  return el("form.faucet", {
    onsubmit: async (event) => {
      event.preventDefault();
      try {
        const wanted = `0x${BigInt(slot.value.trim() || "x").toString(16)}`;
        output.replaceChildren(el("code", { text: await call("eth_getStorageAt", address, wanted, newest()) }));
      } catch (error) {
        output.replaceChildren(el("span.bad", { text: error instanceof SyntaxError ? "expected a number" : error.message }));
      }
    },
  }, slot, el("button", { type: "submit", text: "Read slot" }), output);
}
