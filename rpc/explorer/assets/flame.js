// The call tree of a transaction as a flame graph: width is gas, depth goes down.

import { decode, signatureOf } from "./abi.js";
import { el, facts, speak } from "./dom.js";
import { amount, count, num, short } from "./format.js";
import { addressLink, bytesOf, inputsOf, parametersOf } from "./links.js";
import { decodeInput, failureOf, nameOf } from "./names.js";

const ROW = 30; // pixels
const MOST = 1500; // frames that are drawn
const THINNEST = 0.002; // share of the width below which a frame is left out
const CREATIONS = ["CREATE", "CREATE2"];

/** A call's name: its contract and function. */
export function titleOf(frame) {
  const contract = frame.to ? nameOf(frame.to) ?? short(frame.to) : "";
  if (CREATIONS.includes(frame.type)) return `new ${contract}`;
  const found = decodeInput(frame.to, frame.input);
  const name = found ? found.entry.name : frame.input?.length >= 10 ? frame.input.slice(0, 10) : "";
  return `${contract}${name ? `.${name}` : ""}`;
}

/** Frames in order, each with its position: {frame, depth, from, share, parent}. */
function laidOut(root) {
  const all = [];
  const add = (frame, depth, from, share, parent) => {
    const node = { frame, depth, from, share, parent };
    all.push(node);
    const calls = frame.calls ?? [];
    const inside = calls.reduce((sum, call) => sum + num(call.gasUsed), 0);
    const unit = share / Math.max(num(frame.gasUsed), inside, 1);
    let at = from;
    for (const call of calls) {
      const width = num(call.gasUsed) * unit;
      add(call, depth + 1, at, width, node);
      at += width;
    }
  };
  add(root, 0, 0, 1, null);
  return all;
}

/** The flame graph of callTracer's answer, with details of the chosen frame below it. */
export function flameGraph(trace) {
  const details = el("div.chosen", { "aria-live": "polite" });
  const graph = el("div.flame", { role: "tree", "aria-label": "Calls; width is gas" });
  const counts = el("p.dim");
  let nodes = [];
  const draw = (root) => {
    const all = laidOut(root);
    nodes = all.filter(({ share, depth }) => share >= THINNEST || depth === 0).slice(0, MOST);
    const hidden = all.length - nodes.length;
    const kinds = [...new Set(all.map(({ frame }) => (frame.error ? "failed" : frame.type)))];
    counts.replaceChildren(`${count(all.length)} ${all.length === 1 ? "call" : "calls"}`
      + `${hidden ? `, ${count(hidden)} too thin to be seen` : ""}. Width is gas. `,
    ...kinds.map((kind) => el("span.kind", { "data-kind": kind, "data-failed": kind === "failed", text: kind })));
    const deepest = nodes.reduce((most, { depth }) => Math.max(most, depth), 0);
    graph.style.height = `${(deepest + 1) * ROW}px`;
    graph.replaceChildren(...nodes.map((node, i) => bar(node, i, root)));
    choose(0, false);
  };
  const choose = (i, focus = true) => {
    [...graph.children].forEach((child, at) => {
      child.tabIndex = at === i ? 0 : -1;
      child.setAttribute("aria-selected", at === i);
    });
    if (focus) graph.children[i].focus();
    details.replaceChildren(...frameDetails(nodes[i].frame, nodes[i] !== nodes[0] && (() => draw(nodes[i].frame)),
      nodes[0].frame !== trace && (() => draw(trace))));
  };
  const bar = (node, i, root) => {
    const { frame, depth, from, share } = node;
    const title = titleOf(frame);
    const gas = num(frame.gasUsed);
    const part = Math.round((100 * gas) / Math.max(num(root.gasUsed), 1));
    const made = el("button.bar", {
      type: "button", role: "treeitem", "aria-level": depth + 1, "data-kind": frame.type,
      "data-failed": Boolean(frame.error),
      title: `${frame.type} ${title}\n${count(gas)} gas, ${part} %${frame.error ? `\n${frame.error}` : ""}`,
      "aria-label": `${title} ${count(gas)} gas, ${frame.type}${frame.error ? `, ${frame.error}` : ""}`,
      onclick: () => choose(i),
    }, el("span", { text: title }), " ", share > 0.12 && el("small", { text: count(gas) }) || null);
    made.style.left = `${100 * from}%`;
    made.style.width = `${100 * share}%`;
    made.style.top = `${depth * ROW}px`;
    return made;
  };
  graph.addEventListener("keydown", (event) => {
    const at = [...graph.children].indexOf(document.activeElement);
    const to = neighbour(nodes, at, event.key);
    if (to === null) return;
    event.preventDefault();
    choose(to);
  });
  draw(trace);
  return el("div", {}, graph, counts, details);
}

/**
 * The index of the frame that an arrow key selects: up the caller, down the first call. Null if
 * there is none.
 */
function neighbour(nodes, at, key) {
  const order = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: nodes.length - 1 }[key];
  const found = key === "ArrowUp" ? nodes.indexOf(nodes[at]?.parent)
    : key === "ArrowDown" ? nodes.findIndex(({ parent }) => parent === nodes[at])
    : order ?? -1;
  return nodes[found] ? found : null;
}

/** Details of a call: from, to, function and values, gas, result. */
function frameDetails(frame, zoom, back) {
  const found = decodeInput(frame.to, frame.input);
  const creation = CREATIONS.includes(frame.type);
  const inner = (frame.calls ?? []).reduce((sum, call) => sum + num(call.gasUsed), 0);
  const buttons = el("p.buttons", {},
    zoom ? el("button", { type: "button", text: "Zoom in", onclick: () => { zoom(); speak("Zoomed in"); } }) : null,
    back ? el("button", { type: "button", text: "Whole transaction", onclick: back }) : null);
  return [
    el("h3", {}, el("span.chip", { text: frame.type }), " ",
      found ? el("code", { text: signatureOf(found.entry) }) : titleOf(frame)),
    found && inputsOf(found, frame.to),
    facts([
      ["From", addressLink(frame.from)],
      [creation ? "Created" : "To", frame.to ? addressLink(frame.to) : null],
      ["Value", frame.value && num(frame.value) ? amount(frame.value) : null],
      ["Gas", `${count(num(frame.gasUsed))} (${count(Math.max(0, num(frame.gasUsed) - inner))} outside of its calls)`],
      ["Error", frame.error ? el("span.bad", { text: failureOf(frame) }) : null],
      ["Input", !found && frame.input?.length > 2 && !creation ? bytesOf(frame.input, "input") : null],
      ["Output", output(frame, found, creation)],
    ]),
    buttons.childElementCount ? buttons : null,
  ].filter(Boolean);
}

function output(frame, found, creation) {
  if (!frame.output || frame.output === "0x" || frame.error) return null;
  if (creation) return `${count((frame.output.length - 2) / 2)} bytes of code`;
  const outputs = found?.entry.outputs ?? [];
  try {
    if (outputs.length) return parametersOf(outputs, decode(outputs, frame.output.slice(2)));
  } catch {
    // not of the declared types
  }
  return bytesOf(frame.output, "output");
}
