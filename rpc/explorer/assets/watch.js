// View functions and balances whose values are updated with every slice (fastevm_watch).

import { decode, encode, parseSignature, selectorOf, signatureOf } from "./abi.js";
import { readContracts } from "./contracts.js";
import { card, el, keyed, say, speak } from "./dom.js";
import { amount, checksum, count, num, short } from "./format.js";
import { addressLink, parametersOf, valueOf } from "./links.js";
import { live } from "./live.js";
import { abiOf, allNames, nameOf, revertReason } from "./names.js";
import { subscribe } from "./rpc.js";
import { isAmount, tokenAmount } from "./tokens.js";

const STORE = "fastevm-watched"; // of all chains: {chain: [{address, signature, values}]}
const MOST = 100; // watched values of a chain
const LONGEST_ARGUMENT = 20; // characters
const EXAMPLE = "totalSupply() returns (uint256)";
const BALANCE = "balance"; // instead of a signature: the account's Ether
// Init code that returns the balance of an address.
const BALANCE_CODE = (address) => `0x73${address.slice(2).toLowerCase()}315f5260205ff3`;
const WORD_OUTPUT = [{ name: "", type: "uint256" }];

/** The address in a text: 40 hex digits or a known name. Throws an Error for other texts. */
function addressIn(text) {
  const trimmed = text.trim();
  const found = /^0x[0-9a-f]{40}$/i.test(trimmed) ? trimmed
    : allNames().find(([name]) => name.toLowerCase() === trimmed.toLowerCase())?.[1];
  if (!found) throw new Error("expected an address, 0x and 40 digits, or a name");
  return checksum(found);
}

function stored() {
  try {
    return JSON.parse(localStorage.getItem(STORE)) ?? {};
  } catch {
    return {}; // the browser's storage is switched off, or another program wrote the text
  }
}

const storedItems = () => stored()[live.chain?.id] ?? [];

function store(items) {
  localStorage.setItem(STORE, JSON.stringify({ ...stored(), [live.chain?.id]: items }));
}

const keyOf = ({ address, signature, values }) => JSON.stringify([address, signature, values]);

/** Watch a function with these arguments. Throws an Error if they do not fit. */
export function addWatched(address, entry, values) {
  const item = { address: checksum(address), signature: signatureWithOutputs(entry), values };
  questionOf(item);
  addItem(item);
}

function addBalance(address) {
  addItem({ address: checksum(address), signature: BALANCE, values: [] });
}

function addItem(item) {
  const items = storedItems();
  if (items.some((other) => keyOf(other) === keyOf(item))) return;
  if (items.length >= MOST) throw new Error(`this page watches at most ${MOST} values`);
  store([...items, item]);
}

const typeOf = ({ type, components }) =>
  (components ? `(${components.map(typeOf).join(",")})${type.slice("tuple".length)}` : type);

const signatureWithOutputs = (entry) => `${signatureOf(entry)} returns (${entry.outputs.map(typeOf).join(",")})`;

/** The call of a stored item, and the types of its outputs. */
function questionOf(item) {
  if (item.signature === BALANCE) {
    return { ...item, entry: null, outputs: WORD_OUTPUT, call: { data: BALANCE_CODE(item.address) } };
  }
  const entry = parseSignature(item.signature);
  if (!entry.outputs.length) throw new Error(`add the type of the value, as in ${EXAMPLE}`);
  const data = selectorOf(entry) + encode(entry.inputs, item.values);
  return { ...item, entry, outputs: entry.outputs, call: { to: item.address, data } };
}

const counted = (number, singular) => `${count(number)} ${singular}${number === 1 ? "" : "s"}`;

/** Draw the watched values into `main` and keep them current; returns a function that stops this. */
export function watch(main) {
  const status = el("p.dim", { role: "status" });
  const rows = el("ol.rows.watched");
  main.append(el("h1", { text: "Watch" }), addForm(() => begin()), card("Watched values", status, rows));
  let questions = [];
  let end = () => {};
  const draw = () => keyed(rows, questions, keyOf, (question) => row(question, () => remove(question)), redraw);
  const remove = (question) => {
    store(storedItems().filter((item) => keyOf(item) !== keyOf(question)));
    speak("Removed.");
    begin();
    main.querySelector("#watch-address").focus();
  };
  const begin = () => {
    end();
    end = () => {};
    const changes = new Map(questions.map((question) => [keyOf(question), question.changes]));
    questions = storedItems().flatMap((item) => {
      try {
        return [{ ...questionOf(item), changes: changes.get(keyOf(item)) ?? 0 }];
      } catch {
        return []; // written by another version
      }
    });
    draw();
    say(status, questions.length ? "Asking the node…" : "No values yet. Values that you add are updated with every slice.");
    if (!questions.length) return;
    const options = { fastevm_watch: { calls: questions.map(({ call }) => call), block: "pending" } };
    end = subscribe({ fastevm_watch: take }, options, (accepted, refused) => {
      if (accepted?.length) say(status, `${counted(questions.length, "value")}, updated with every slice.`);
      else say(status, accepted ? `The node does not watch values: ${refused.fastevm_watch}.` : "No connection.");
    });
  };
  const take = (result, error) => {
    if (error) return say(status, `The node ended the subscription: ${error.message}.`);
    for (const answer of result.answers) {
      const question = questions[answer.question];
      if (answer.stale || !question) continue;
      if (!result.snapshot) question.changes += 1;
      question.answer = answer;
      question.at = result;
      question.isNew = true;
    }
    draw();
  };
  begin();
  return () => end();
}

function row(question, remove) {
  const { address } = question;
  const label = question.entry ? callText(question) : "Balance";
  return el("li", {}, el("div.question", {}, el("code", { text: label }), addressLink(address)),
    el("div.value", { text: "…" }), el("small.dim.when"),
    el("button.quiet", { type: "button", "aria-label": `Remove ${label} of ${nameOf(address) ?? short(address)}`,
      text: "✕", onclick: remove }));
}

const callText = ({ entry, values }) => `${entry.name}(${values.map(argumentText).join(", ")})`;

function argumentText(value) {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > LONGEST_ARGUMENT ? `${text.slice(0, LONGEST_ARGUMENT - 2)}…` : text;
}

function redraw(line, question) {
  if (!question.isNew) return;
  question.isNew = false;
  const { answer, at, changes } = question;
  // A new element, because it starts the animation again.
  line.querySelector(".value").replaceWith(el(at.snapshot ? "div.value" : "div.value.fresh", {}, valueIn(question, answer)));
  const slice = at.index === null ? "" : `, slice ${at.index}`;
  say(line.querySelector(".when"), `${changes ? `${counted(changes, "change")}, ` : ""}block ${count(num(at.blockNumber))}${slice}`);
}

function valueIn({ entry, outputs, address }, { status, returnData }) {
  if (status !== "0x1") return el("span.bad", { text: revertReason(returnData) });
  try {
    const values = decode(outputs, returnData.slice(2));
    if (!entry) return amount(values[0], 18);
    if (values.length > 1) return parametersOf(outputs, values);
    return isAmount(entry, { ...outputs[0], name: "" }) ? tokenAmount(values[0], address) : valueOf(outputs[0], values[0]);
  } catch {
    return el("span.bad", { text: "no value of this type: is there such a function?" });
  }
}

function addForm(added) {
  const field = (name, placeholder, more = {}) =>
    el("input", { id: `watch-${name}`, autocomplete: "off", spellcheck: "false", placeholder, ...more });
  const address = field("address", "0x…", { list: "names", required: true });
  const signature = field("function", EXAMPLE, { list: "watch-functions" });
  const values = field("values", '["0x…", 12]');
  const known = el("datalist", { id: "watch-functions" });
  const output = el("output", { "aria-live": "polite" });
  address.addEventListener("change", async () => {
    try {
      const functions = await readFunctions(addressIn(address.value));
      known.replaceChildren(...functions.map((entry) => el("option", { value: signatureWithOutputs(entry) })));
    } catch {
      // the form reports it when it is sent
    }
  });
  const add = async () => {
    const target = addressIn(address.value);
    const entries = await entriesOf(target, signature.value.trim());
    const given = argumentsIn(values.value);
    for (const entry of entries) {
      if (entry) addWatched(target, entry, entries.length > 1 ? [] : given);
      else addBalance(target);
    }
    added();
    output.replaceChildren(entries.length === 1 ? "Added." : `${entries.length} values added.`);
  };
  return card("Add a value", el("form.abi.watch-form", {
    onsubmit: (event) => {
      event.preventDefault();
      add().catch((error) => output.replaceChildren(el("span.bad", { text: error.message })));
    },
  }, el("label", { for: "watch-address", text: "Contract or account" }), address,
  el("label", { for: "watch-function", text: "Function; if empty, the balance and all known functions without arguments" }), signature, known,
  el("label", { for: "watch-values", text: "Arguments, as a JSON list" }), values,
  el("p.buttons", {}, el("button.primary", { type: "submit", text: "Watch" }), output)));
}

/** The arguments in a JSON list; none in an empty text. */
function argumentsIn(text) {
  let list = null;
  try {
    list = JSON.parse(text.trim() || "[]");
  } catch {
    // reported below
  }
  if (!Array.isArray(list)) throw new Error('expected the arguments as a JSON list, as in ["0x…", 12]');
  return list;
}

const isRead = (entry) => entry.type === "function" && entry.outputs.length > 0
  && (["view", "pure"].includes(entry.stateMutability) || entry.constant === true);

/** The read functions in a contract's known ABI. */
async function readFunctions(address) {
  await readContracts([address]);
  return abiOf(address).filter(isRead);
}

/** The functions to watch; null stands for the balance. */
async function entriesOf(address, text) {
  const known = await readFunctions(address);
  if (!text) return [null, ...known.filter(({ inputs }) => !inputs.length)];
  const named = known.find((entry) => signatureWithOutputs(entry) === text || entry.name === text || signatureOf(entry) === text);
  return [named ?? parseSignature(text)];
}
