// The page of a transaction: outcome, decoded input, logs, calls as a flame graph, what it changed.

import { signatureOf } from "./abi.js";
import { addressesIn, callList } from "./calls.js";
import { readContracts } from "./contracts.js";
import { differenceTable } from "./difference.js";
import { card, el, facts } from "./dom.js";
import { flameGraph } from "./flame.js";
import { amount, big, count, gwei, moment, num, short } from "./format.js";
import { addressLink, blockLink, bytesOf, hexValue, inputsOf } from "./links.js";
import { listen, live } from "./live.js";
import { decodeInput, decodeLog, failureOf } from "./names.js";
import { call, callAlone, tryCall } from "./rpc.js";

const TYPES = ["legacy", "access list (EIP-2930)", "dynamic fee (EIP-1559)", "blob (EIP-4844)",
  "set code (EIP-7702)"];
const MOST_LOGS = 500;

/** Draw the transaction with a hash; returns a function that stops its updates. */
export async function transaction(main, hash) {
  const [found, receipt] = await Promise.all([
    call("eth_getTransactionByHash", hash), tryCall("eth_getTransactionReceipt", hash)]);
  if (!found) {
    main.append(el("h1", { text: "No such transaction" }),
      el("p", {}, "Neither the chain nor the pool has ", el("code", { text: hash }), "."));
    return untilChanged(main, hash, null);
  }
  const block = found.blockNumber && (await tryCall("eth_getBlockByNumber", found.blockNumber, false));
  await readContracts([found.to, receipt?.contractAddress, ...(receipt?.logs ?? []).map(({ address }) => address)]);
  const state = stateOf(found, receipt, block);
  const parts = el("div.parts", { "aria-busy": "true" });
  main.append(title(hash, state), el("div.columns", {},
    card("Summary", summary(found, receipt, block, state)), inputCard(found)), parts);
  const reason = main.querySelector("#reason");
  const inside = state.stage !== "pool";
  const explained = inside && explanation(parts, hash);
  logsCard(parts, receipt);
  const [inferred] = await Promise.all([explained, inside && traces(parts, hash, reason)]);
  if (reason && inferred) reason.textContent = inferred;
  parts.removeAttribute("aria-busy");
  return state.stage === "block" ? () => {} : untilChanged(main, hash, state);
}

/**
 * `stage`: pool, slice or block. `failed`: whether the transaction failed; null if that is not
 * known.
 */
function stateOf(found, receipt, block) {
  const sealed = block && big(found.blockHash ?? 0) && block.hash === found.blockHash;
  const stage = !found.blockNumber ? "pool" : sealed ? "block" : "slice";
  const failed = receipt ? !num(receipt.status) : null;
  return { stage, failed };
}

/** Draw again when the transaction reaches another stage. */
function untilChanged(main, hash, state) {
  let asking = false;
  let last = null;
  return listen(async () => {
    const now = `${live.blocks[0]?.hash} ${live.pending?.transactions.length}`;
    if (asking || now === last) return;
    asking = true;
    try {
      const found = await call("eth_getTransactionByHash", hash);
      const block = found?.blockNumber && (await tryCall("eth_getBlockByNumber", found.blockNumber, false));
      const stage = found && stateOf(found, null, block).stage;
      if (stage && stage !== state?.stage) main.dispatchEvent(new Event("stale"));
    } catch {
      // the header shows that the node is away
    }
    last = now;
    asking = false;
  });
}

function title(hash, { stage, failed }) {
  const chips = [
    stage === "pool" ? ["wait", "waits in the pool"] : stage === "slice" ? ["wait", "pre-confirmed"] : null,
    failed === null ? null : failed ? ["bad", "failed"] : ["good", "success"],
  ].filter(Boolean);
  return el("div.title", {}, el("h1", { text: "Transaction" }),
    chips.map(([tone, text]) => el("span.chip", { "data-tone": tone, text })),
    el("p.hash", {}, hexValue(hash, "hash")));
}

function summary(found, receipt, block, { failed }) {
  const price = receipt?.effectiveGasPrice ?? found.gasPrice;
  const used = receipt && num(receipt.gasUsed);
  return facts([
    ["Reason", failed ? el("span.bad", { id: "reason", text: "…" }) : null],
    ["Block", found.blockNumber ? [blockLink(found.blockNumber),
      ` · index ${num(found.transactionIndex)}`] : "none yet"],
    ["Time", block ? moment(num(block.timestamp)) : null],
    ["From", addressLink(found.from, { full: true })],
    ["To", found.to ? addressLink(found.to, { full: true }) : null],
    ["Created", receipt?.contractAddress ? addressLink(receipt.contractAddress, { full: true }) : null],
    ["Value", amount(found.value)],
    ["Fee", used ? amount(BigInt(used) * BigInt(price)) : null],
    ["L1 fee", receipt?.l1Fee ? amount(receipt.l1Fee) : null],
    ["Gas", used ? `${count(used)} of ${count(num(found.gas))} (${((100 * used) / num(found.gas)).toFixed(1)} %)` : count(num(found.gas))],
    ["Gas price", price ? `${gwei(price)}${found.maxFeePerGas ? ` (at most ${gwei(found.maxFeePerGas)}, priority ${gwei(found.maxPriorityFeePerGas)})` : ""}` : null],
    ["Nonce", count(num(found.nonce))],
    ["Kind", TYPES[num(found.type)] ?? `type ${num(found.type)}`],
  ]);
}

function inputCard(found) {
  if (!found.to) return card("Input", el("p", { text: "Creates a contract." }), bytesOf(found.input, "init code"));
  if (found.input === "0x") return card("Input", el("p.dim", { text: "None: a transfer of ether." }));
  const decoded = decodeInput(found.to, found.input);
  if (!decoded) {
    return card("Input", el("p.dim", {}, "A function that is not known: ",
      el("a", { href: `#/address/${found.to}`, text: "add the contract's ABI" }), "."), bytesOf(found.input, "input"));
  }
  return card("Input", el("p.signature", {}, el("code", { text: signatureOf(decoded.entry) })),
    inputsOf(decoded, found.to), bytesOf(found.input, "input"));
}

function logsCard(parts, receipt) {
  const logs = receipt?.logs ?? [];
  if (!logs.length) return;
  parts.append(card(`${count(logs.length)} ${logs.length === 1 ? "log" : "logs"}`,
    el("ol.logs", {}, logs.slice(0, MOST_LOGS).map((log, i) => {
      const found = decodeLog(log);
      return el("li", {}, el("p", {}, el("span.chip", { text: `#${i}` }), " ",
        el("b", { text: found?.entry.name ?? short(log.topics[0] ?? "no topic") }), " of ", addressLink(log.address)),
      found ? inputsOf(found, log.address) : rawLog(log));
    }))));
}

const rawLog = ({ topics, data }) => el("dl.parameters", {},
  topics.map((topic, i) => el("div", {}, el("dt", { text: `topic ${i}` }), el("dd", {}, el("code", { text: topic })))),
  el("div", {}, el("dt", { text: "data" }), el("dd", {}, bytesOf(data, "data"))));

/** The console's lines and the source lines of a failure, where the node gives them.
 *  Returns the reason of a failure without data, if the node can infer it. */
async function explanation(parts, hash) {
  const console = el("section.card", { "aria-label": "Console", hidden: true });
  const source = el("section.card", { "aria-label": "Source of the failure", hidden: true });
  parts.append(source, console);
  const found = await tryCall("fastevm_explainTransaction", hash);
  if (found?.console.length) {
    console.append(el("h2", { text: "Console" }), el("pre.console", { text: found.console.join("\n"), tabindex: "0" }));
    console.hidden = false;
  }
  if (found?.source.length) {
    source.append(el("h2", { text: "Source of the failure" }), el("ol.source", {}, found.source.map(
      ({ contract, file, line, text }) => el("li", {}, el("p.dim", { text: `${contract} · ${file}:${line}` }),
        el("pre", { tabindex: "0" }, el("small", { text: `${line} ` }), text)))));
    source.hidden = false;
  }
  return found?.reason;
}

/** Cards of calls and state changes from the node's tracers; if the node refuses, they show why. */
async function traces(parts, hash, reason) {
  const calls = card("Calls and gas", el("p.dim", { text: "Tracing…" }));
  const changes = card("State before and after", el("p.dim", { text: "Tracing…" }));
  parts.append(calls, changes);
  const options = (tracer, tracerConfig) => callAlone("debug_traceTransaction", hash, { tracer, tracerConfig });
  const fill = async (element, asked, draw) => {
    try {
      element.lastChild.replaceWith(draw(await asked));
    } catch (error) {
      element.lastChild.replaceWith(el("p.dim", { text: `The node gives no trace: ${error.message}.` }));
      reason?.replaceChildren("unknown");
    }
  };
  await Promise.all([
    fill(calls, options("callTracer", { withLog: false }).then(async (trace) => {
      await readContracts(addressesIn(trace));
      return trace;
    }), (trace) => {
      if (reason) reason.textContent = failureOf(trace) ?? "";
      return el("div", {}, flameGraph(trace), callList(trace));
    }),
    fill(changes, options("prestateTracer", { diffMode: true }), differenceTable),
  ]);
}
