// The calls of a transaction as an indented list: caller, called function, values, gas and result.

import { decode } from "./abi.js";
import { el } from "./dom.js";
import { amount, count, num } from "./format.js";
import { titleOf } from "./flame.js";
import { decodeInput, failureOf } from "./names.js";

const MOST = 300; // calls that are shown
const LONGEST = 60; // characters of a value
const MOST_NAMED = 60; // most contracts of one trace whose names are requested
const DEEPEST_INDENT = 12;

/** The addresses of the contracts in a trace. */
export function addressesIn(trace) {
  const found = new Set();
  const frames = [trace];
  while (frames.length && found.size < MOST_NAMED) {
    const frame = frames.pop();
    if (frame.to) found.add(frame.to);
    frames.push(...(frame.calls ?? []));
  }
  return [...found];
}

/** The calls of callTracer's answer in their order. */
export function callList(trace) {
  const rows = [];
  let total = 0;
  const frames = [[trace, 0]];
  while (frames.length) {
    const [frame, depth] = frames.pop();
    if (++total <= MOST) rows.push(row(frame, depth));
    for (const call of [...(frame.calls ?? [])].reverse()) frames.push([call, depth + 1]);
  }
  const cut = total > MOST ? el("p.dim", { text: `The first ${count(MOST)} of ${count(total)} calls are shown.` }) : null;
  return el("details.calls", { open: total > 1 && total <= 40 },
    el("summary", { text: total === 1 ? "List of 1 call" : `List of ${count(total)} calls` }),
    el("div.scroll", { role: "group", "aria-label": "List of calls", tabindex: "0" }, el("ol", {}, rows)), cut);
}

function row(frame, depth) {
  const shown = el("li", { "data-failed": Boolean(frame.error) },
    el("span.kind", { "data-kind": frame.type, "data-failed": Boolean(frame.error), text: frame.type.toLowerCase() }), " ",
    el("code", { text: `${titleOf(frame)}${values(frame)}` }),
    frame.value && num(frame.value) ? [" ", amount(frame.value, 4)] : null,
    el("small", { text: ` ${count(num(frame.gasUsed))} gas ` }),
    frame.error ? el("span.bad", { text: `✕ ${failureOf(frame)}` })
      : result(frame));
  shown.style.paddingLeft = `${1.25 * Math.min(depth, DEEPEST_INDENT)}rem`;
  return shown;
}

const short = (value) => {
  const text = JSON.stringify(value, (_, each) => (typeof each === "bigint" ? each.toLocaleString("en") : each));
  const bare = typeof value === "string" || typeof value === "bigint" ? text.slice(1, -1) : text;
  return bare.length > LONGEST ? `${bare.slice(0, LONGEST)}…` : bare;
};

function values(frame) {
  const found = frame.to && decodeInput(frame.to, frame.input);
  if (!found) return "";
  return `(${found.values.map((value, i) => `${found.entry.inputs[i].name || i}: ${short(value)}`).join(", ")})`;
}

function result(frame) {
  const outputs = (frame.to && decodeInput(frame.to, frame.input))?.entry.outputs ?? [];
  if (!outputs.length || !frame.output || frame.output === "0x") return null;
  try {
    return el("span.dim", { text: `→ ${decode(outputs, frame.output.slice(2)).map(short).join(", ")}` });
  } catch {
    return null; // not of the declared types
  }
}
