// A form for a contract's name and ABI, and forms that call its functions.

import { decode, encode, selectorOf, signatureOf, weiOf } from "./abi.js";
import { newest, ownAccounts, sendFrom } from "./accounts.js";
import { contractOf } from "./contracts.js";
import { card, el } from "./dom.js";
import { parametersOf, transactionLink, valueOf } from "./links.js";
import { abiOf, describe, described, nameOf, revertReason } from "./names.js";
import { Refusal, call, tryCall } from "./rpc.js";
import { isAmount, tokenAmount } from "./tokens.js";
import { addWatched } from "./watch.js";

const LARGEST_FILE = 4 * 1024 * 1024; // bytes of a dropped file
const RECEIPT_EVERY = 200; // milliseconds between polls of a receipt
const RECEIPT_LOOKS = 15;
const EXAMPLE = "function transfer(address to, uint256 value) returns (bool)\nfunction balanceOf(address owner) view returns (uint256)";

/** The card of a contract's functions. */
export function contractCard(address) {
  const stored = described(address);
  const name = el("input", { id: "contract-name", value: stored.name, autocomplete: "off", placeholder: "such as Token" });
  const abi = el("textarea", { id: "contract-abi", rows: 4, spellcheck: "false", placeholder: EXAMPLE });
  abi.value = stored.abi;
  const output = el("output", { "aria-live": "polite" });
  const functions = el("div.functions");
  const show = (entries) => functions.replaceChildren(...functionForms(address, entries));
  const keep = () => {
    try {
      const entries = describe(address, name.value, abi.value);
      output.replaceChildren(`Kept in this browser: ${entries.length} entries.`);
      show(entries.length ? entries : abiOf(address));
    } catch (error) {
      output.replaceChildren(el("span.bad", { text: error.message }));
    }
  };
  takeFiles(abi, output, keep);
  show(abiOf(address));
  const given = stored.abi ? null : contractOf(address);
  const form = el("form.abi", { onsubmit: (event) => { event.preventDefault(); keep(); } },
    el("label", { for: "contract-name", text: "Name" }), name,
    el("label", { for: "contract-abi", text: "ABI: JSON, an artifact, or a signature on each line; paste or drop a file" }), abi,
    el("p.buttons", {}, el("button.primary", { type: "submit", text: "Use" }), output));
  const isKnown = Boolean(stored.abi || given);
  const source = given ? el("p.dim", { text: `ABI of ${given.name}, from the files of the node.` }) : "";
  return card("Call a function", source, el("details", { open: !isKnown }, el("summary", { text: isKnown ? "Name and ABI of your own" : "Give the ABI" }), form), functions);
}

function takeFiles(area, output, keep) {
  area.addEventListener("dragover", (event) => event.preventDefault());
  area.addEventListener("drop", async (event) => {
    const [file] = event.dataTransfer.files;
    if (!file) return; // text: the browser inserts it
    event.preventDefault();
    if (file.size > LARGEST_FILE) output.replaceChildren(el("span.bad", { text: "the file is too large" }));
    else {
      area.value = await file.text();
      keep();
    }
  });
}

const isRead = (entry) => ["view", "pure"].includes(entry.stateMutability) || entry.constant === true;

function functionForms(address, entries) {
  const all = entries.filter((entry) => entry.type === "function");
  const group = (title, list) => (list.length
    ? [el("h3", { text: title }), ...list.map((entry) => functionForm(address, entry))] : []);
  return [...group("Read", all.filter(isRead)), ...group("Write", all.filter((entry) => !isRead(entry)))];
}

/** A function without parameters that only reads: its value is read immediately. */
function constant(address, entry) {
  const shown = el("div.value", { text: "…" });
  called(entry, null, { to: address, data: selectorOf(entry) }).then((parts) => shown.replaceChildren(...parts),
    (error) => shown.replaceChildren(el("span.bad", { text: error.message })));
  return el("div.function", {}, el("code", { text: signatureOf(entry) }), watchButton(address, entry, () => []), shown);
}

/** A button that adds a function to the watched values. */
function watchButton(address, entry, values) {
  const output = el("output", { "aria-live": "polite" });
  const add = () => {
    try {
      addWatched(address, entry, values());
      output.replaceChildren(el("a", { href: "#/watch", text: "Watched" }));
    } catch (error) {
      output.replaceChildren(el("span.bad", { text: error.message }));
    }
  };
  const button = el("button.quiet", { type: "button", "aria-label": `Watch ${entry.name}`, text: "Watch", onclick: add });
  return entry.outputs.length ? el("span.watch", {}, button, " ", output) : null;
}

function functionForm(address, entry) {
  if (isRead(entry) && !entry.inputs.length) return constant(address, entry);
  const inputs = entry.inputs.map((input, i) => el("label", {}, el("span", {}, input.name || `#${i}`, " ", el("small", { text: input.type })),
    el("input", { name: `i${i}`, autocomplete: "off", spellcheck: "false", placeholder: hint(input.type) })));
  const value = entry.stateMutability === "payable" ? el("input", { "aria-label": "Ether to send", placeholder: "0 ETH" }) : null;
  const from = el("select", { "aria-label": "From" });
  const output = el("output", { "aria-live": "polite" });
  const run = async (send) => {
    output.textContent = "…";
    try {
      const values = inputs.map((label) => label.lastChild.value);
      const data = selectorOf(entry) + encode(entry.inputs, values);
      const members = { to: address, data, ...(value && { value: `0x${weiOf(value.value).toString(16)}` }) };
      output.replaceChildren(...(send ? await sent(from.value, members) : await called(entry, from.value, members)));
    } catch (error) {
      const reason = error instanceof Refusal && typeof error.data === "string" && error.data !== "0x"
        ? `reverts: ${revertReason(error.data)}` : error.message;
      output.replaceChildren(el("span.bad", { text: reason }));
    }
  };
  const send = el("button.primary", { type: "button", text: "Send", onclick: () => run(true) });
  send.hidden = from.hidden = true;
  if (!isRead(entry)) {
    ownAccounts().then((all) => {
      send.hidden = from.hidden = !all.length;
      from.append(...all.slice(0, 50).map((account) => el("option", { value: account, text: `from ${nameOf(account)}` })));
    }).catch(() => {});
  }
  return el("details.function", {}, el("summary", {}, el("code", { text: signatureOf(entry) })),
    el("form", { onsubmit: (event) => { event.preventDefault(); run(false); } }, inputs, value,
      el("p.buttons", {}, el("button", { type: "submit", text: isRead(entry) ? "Call" : "Simulate" }), from, send,
        isRead(entry) && watchButton(address, entry, () => inputs.map((label) => label.lastChild.value))), output));
}

function hint(type) {
  if (type.endsWith("]")) return "[…]";
  if (type.startsWith("tuple")) return "[…] or {…}";
  return { address: "0x…", bool: "true or false", string: "text", bytes: "0x…" }[type]
    ?? (type.startsWith("bytes") ? "0x…" : "12, 0x0c, 1e18, 1.5 ether");
}

async function called(entry, from, members) {
  const answer = await call("eth_call", { ...(from && { from }), ...members }, newest());
  if (!entry.outputs.length) return [answer === "0x" ? "It succeeds." : el("code", { text: answer })];
  const values = decode(entry.outputs, answer.slice(2));
  const [output] = entry.outputs;
  if (values.length === 1 && isAmount(entry, { ...output, name: "" })) return [tokenAmount(values[0], members.to)];
  return [values.length === 1 ? valueOf(output, values[0]) : parametersOf(entry.outputs, values)];
}

async function sent(from, members) {
  const hash = await sendFrom(from, members);
  const outcome = el("span", { text: "Sent: " });
  receiptOf(hash).then((receipt) => {
    if (receipt?.status !== "0x0") return;
    const reason = receipt.revertReason ? ` (${receipt.revertReason})` : "";
    outcome.replaceWith(el("span.bad", { text: `The transaction failed${reason}: ` }));
  }).catch(() => {}); // the header shows that the node does not answer
  return [outcome, transactionLink(hash)];
}

/** The receipt of a transaction; null if no block has it within seconds. */
async function receiptOf(hash) {
  for (let left = RECEIPT_LOOKS; left > 0; left -= 1) {
    const receipt = await tryCall("eth_getTransactionReceipt", hash);
    if (receipt) return receipt;
    await new Promise((resolve) => setTimeout(resolve, RECEIPT_EVERY));
  }
  return null;
}
