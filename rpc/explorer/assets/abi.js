// Contract ABIs: read from JSON or signatures as people write them; values encoded and decoded.

import { checksum } from "./format.js";
import { keccakText } from "./keccak.js";

const WORD = 64; // hex digits
const MOST_VALUES = 4096; // elements of one decoded array
const DEEPEST = 16;
const MOST_DECODED = 8192; // values of one call: offsets may point to the same bytes many times
const DIGITS_PER_VALUE = 2048; // of a string or bytes; more count as more values
const KINDS = ["function", "event", "error", "constructor"];

// --- signatures ---

/** Parameters as in `(address to, (uint256 a, bool b)[] pairs)`, without the outer brackets. */
function parameters(text) {
  return split(text).map((part) => {
    const tuple = part.match(/^(?:tuple)?\s*\(/);
    const end = tuple ? closing(part, tuple[0].length - 1) + 1 : part.search(/\s|$/);
    const inside = tuple ? part.slice(tuple[0].length, end - 1) : null;
    const [, array, rest] = (tuple ? part.slice(end) : part.slice(part.search(/\[|\s|$/)))
      .match(/^((?:\[\d*\])*)\s*(.*)$/s);
    const words = rest.split(/\s+/).filter(Boolean);
    const indexed = words.includes("indexed");
    const name = words.filter((w) => !["indexed", "memory", "calldata", "storage", "payable"].includes(w))[0];
    const base = tuple ? "tuple" : part.slice(0, part.search(/\[|\s|$/));
    const type = `${{ uint: "uint256", int: "int256" }[base] ?? base}${array}`;
    check(type);
    return { name: name ?? "", type, indexed, ...(tuple && { components: parameters(inside) }) };
  });
}

/** Parts between commas outside of brackets. */
function split(text) {
  const parts = [];
  let [depth, from] = [0, 0];
  for (let i = 0; i <= text.length; i++) {
    if (text[i] === "(") depth++;
    if (text[i] === ")") depth--;
    if (i === text.length || (text[i] === "," && depth === 0)) {
      parts.push(text.slice(from, i).trim());
      from = i + 1;
    }
  }
  if (parts.length === 1 && !parts[0]) return [];
  if (parts.includes("")) throw new Error("a parameter is missing between commas");
  return parts;
}

function closing(text, open) {
  for (let i = open, depth = 0; i < text.length; i++) {
    if (text[i] === "(") depth++;
    if (text[i] === ")" && --depth === 0) return i;
  }
  throw new Error("a bracket is not closed");
}

const TYPE = /^(address|bool|string|bytes|tuple|function|u?int(\d+)|bytes(\d+))((\[\d*\])*)$/;

function check(type) {
  const found = type.match(TYPE);
  const bits = found?.[2] && Number(found[2]);
  const size = found?.[3] && Number(found[3]);
  const isRight = found && (!bits || (bits <= 256 && bits % 8 === 0)) && (!size || size <= 32);
  if (!isRight || bits === 0 || size === 0) throw new Error(`there is no type ${type || "(empty)"}`);
}

/** An entry of an ABI from `function transfer(address to, uint256 amount) returns (bool)`. */
export function parseSignature(line) {
  const found = line.trim().replace(/;$/, "")
    .match(/^(?:(function|event|error|constructor)\b\s*)?([A-Za-z_$][\w$]*)?\s*(\(.*)$/s);
  if (!found) throw new Error("expected name(type name, ...)");
  const [, type = "function", name = "", rest] = found;
  const end = closing(rest, 0);
  const tail = rest.slice(end + 1);
  const returned = tail.match(/\breturns\s*\(/);
  const from = returned && returned.index + returned[0].length - 1;
  const outputs = returned ? parameters(tail.slice(from + 1, closing(tail, from))) : [];
  const stateMutability = tail.match(/\b(view|pure|payable)\b/)?.[1] ?? "nonpayable";
  return { type, name, inputs: parameters(rest.slice(1, end)), outputs, stateMutability };
}

/** The entries of an ABI: JSON (a list, or an artifact with `abi`) or a signature on each line. */
export function parseAbi(text) {
  const trimmed = text.trim();
  if (/^[[{]/.test(trimmed)) {
    const json = JSON.parse(trimmed);
    const entries = Array.isArray(json) ? json : json.abi ?? json.output?.abi;
    if (!Array.isArray(entries)) throw new Error("the JSON holds no list `abi`");
    return entries.flatMap((entry) => (typeof entry === "string" ? parseSignature(entry) : entry))
      .filter((entry) => KINDS.includes(entry.type))
      .map((entry) => ({ ...entry, inputs: entry.inputs ?? [], outputs: entry.outputs ?? [] }));
  }
  return trimmed.split("\n").map((line) => line.replace(/\/\/.*/, "").trim()).filter(Boolean)
    .map((line, i) => {
      try {
        return parseSignature(line);
      } catch (error) {
        throw new Error(`line ${i + 1}: ${error.message}`);
      }
    });
}

const canonicalType = (input) =>
  input.type.startsWith("tuple")
    ? `(${input.components.map(canonicalType).join(",")})${input.type.slice(5)}`
    : input.type;

/** `transfer(address,uint256)` */
export const signatureOf = (entry) => `${entry.name}(${entry.inputs.map(canonicalType).join(",")})`;

/** The first four bytes of the hash of a signature. */
export const selectorOf = (entry) => keccakText(signatureOf(entry)).slice(0, 10);

/** The first topic of an event. */
export const topicOf = (entry) => keccakText(signatureOf(entry));

// --- values ---

function element(input) {
  const found = input.type.match(/^(.*)\[(\d*)\]$/);
  return found && [{ ...input, type: found[1] }, found[2] === "" ? null : Number(found[2])];
}

function isDynamic(input) {
  const array = element(input);
  if (array) return array[1] === null || isDynamic(array[0]);
  if (input.type === "tuple") return input.components.some(isDynamic);
  return input.type === "string" || input.type === "bytes";
}

function words(input) {
  const array = element(input);
  if (array) return isDynamic(input) ? 1 : array[1] * words(array[0]);
  if (isDynamic(input)) return 1;
  return input.type === "tuple" ? input.components.reduce((sum, c) => sum + words(c), 0) : 1;
}

const word = (value) => BigInt.asUintN(256, value).toString(16).padStart(WORD, "0");
const padded = (hex) => hex.padEnd(Math.ceil(hex.length / WORD) * WORD, "0");

/** Encode values; returns hex digits without 0x. Throws an Error that names what does not fit. */
export function encode(inputs, values) {
  if (values.length !== inputs.length) {
    throw new Error(`expected ${inputs.length} values, not ${values.length}`);
  }
  let at = inputs.reduce((sum, input) => sum + words(input), 0) * 32;
  let [head, tail] = ["", ""];
  inputs.forEach((input, i) => {
    const made = encodeValue(input, values[i]);
    if (!isDynamic(input)) head += made;
    else {
      head += word(BigInt(at));
      tail += made;
      at += made.length / 2;
    }
  });
  return head + tail;
}

/** The value of a JSON text; null for other texts. */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function encodeValue(input, value) {
  const array = element(input);
  if (array) {
    const [inner, length] = array;
    const list = typeof value === "string" ? parsed(value.trim() || "[]") : value;
    if (!Array.isArray(list)) throw new Error(`${input.type}: write a list as ["0x…", "0x…"] or [1, 2]`);
    if (length !== null && list.length !== length) throw new Error(`${input.type}: not ${length} values`);
    const all = encode(list.map(() => inner), list);
    return length === null ? word(BigInt(list.length)) + all : all;
  }
  if (input.type === "tuple") {
    const given = typeof value === "string" ? parsed(value) : value;
    if (given === null || typeof given !== "object") throw new Error(`${input.type}: write a list as [1, "text"], or {"name": 1}`);
    const list = Array.isArray(given) ? given : input.components.map((c) => given[c.name]);
    return encode(input.components, list);
  }
  return encodeSimple(input.type, typeof value === "string" ? value.trim() : value, value);
}

function encodeSimple(type, value, untrimmed) {
  const wrong = () => new Error(`${type}: ${JSON.stringify(String(value))} does not fit`);
  if (type === "string") {
    const bytes = new TextEncoder().encode(String(untrimmed));
    const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    return word(BigInt(bytes.length)) + padded(hex);
  }
  if (type.startsWith("bytes")) {
    if (!/^0x([0-9a-fA-F]{2})*$/.test(value)) throw wrong();
    const hex = value.slice(2);
    if (type === "bytes") return word(BigInt(hex.length / 2)) + padded(hex);
    if (hex.length !== 2 * Number(type.slice(5))) throw wrong();
    return padded(hex);
  }
  if (type === "address") {
    if (!/^0x[0-9a-fA-F]{40}$/.test(value)) throw wrong();
    return value.slice(2).toLowerCase().padStart(WORD, "0");
  }
  if (type === "bool") {
    if (!/^(true|false|0|1)$/.test(String(value))) throw wrong();
    return word(/^(true|1)$/.test(String(value)) ? 1n : 0n);
  }
  const number = integer(value, wrong);
  const bits = Number(type.match(/\d+$/)?.[0] ?? 256);
  const fits = type.startsWith("u") ? BigInt.asUintN(bits, number) : BigInt.asIntN(bits, number);
  if (fits !== number) throw wrong();
  return word(number);
}

const UNITS = { wei: 0, gwei: 9, ether: 18 };

/** 12, 0x0c, 1_000, 1e18, "1.5 ether" */
function integer(value, wrong) {
  if (typeof value === "number" && !Number.isSafeInteger(value)) throw wrong(); // JSON rounded it
  const text = String(value).replaceAll("_", "");
  if (/^-?\d+$/.test(text) || /^0x[0-9a-fA-F]+$/.test(text)) return BigInt(text);
  const found = text.match(/^(-?)(\d+)(?:\.(\d+))?(?:e(\d+)|\s*(wei|gwei|ether))$/);
  if (!found) throw wrong();
  const [, sign, whole, part = "", exponent, unit] = found;
  const decimals = Number(exponent ?? UNITS[unit]);
  if (part.length > decimals || decimals > 77) throw wrong();
  return BigInt(`${sign}${whole}${part.padEnd(decimals, "0")}`);
}

/** An amount of ether as people write it, in wei. */
export const weiOf = (text) => {
  const wrong = () => new Error(`${JSON.stringify(text)} is no amount of ether`);
  const trimmed = text.trim() || "0";
  return integer(/[a-z]/.test(trimmed) ? trimmed : `${trimmed} ether`, wrong);
};

/** Decode hex digits. Throws an Error if they do not have these types, or too many values. */
export function decode(inputs, hex, from = 0, depth = 0, budget = { left: MOST_DECODED }) {
  if (depth > DEEPEST) throw new Error("nested too deeply");
  spend(budget, inputs.length);
  let at = from;
  return inputs.map((input) => {
    const here = at;
    at += words(input) * WORD;
    const start = isDynamic(input) ? from + 2 * size(hex, here) : here;
    return decodeValue(input, hex, start, depth, budget);
  });
}

function spend(budget, values) {
  budget.left -= values;
  if (budget.left < 0) throw new Error("too many values");
}

function wordAt(hex, at) {
  if (at + WORD > hex.length) throw new Error("too short");
  return BigInt(`0x${hex.slice(at, at + WORD)}`);
}

function size(hex, at) {
  const value = wordAt(hex, at);
  if (value > BigInt(hex.length)) throw new Error("points beyond the end");
  return Number(value);
}

function decodeValue(input, hex, at, depth, budget) {
  const array = element(input);
  if (array) {
    const [inner, fixedLength] = array;
    const length = fixedLength ?? size(hex, at);
    if (length > MOST_VALUES) throw new Error("too many values");
    const start = fixedLength === null ? at + WORD : at;
    return decode(Array(length).fill(inner), hex, start, depth + 1, budget);
  }
  const { type } = input;
  if (type === "tuple") return decode(input.components, hex, at, depth + 1, budget);
  if (type === "string" || type === "bytes") {
    const end = at + WORD + 2 * size(hex, at);
    if (end > hex.length) throw new Error("too short");
    spend(budget, Math.floor((end - at) / DIGITS_PER_VALUE));
    const digits = hex.slice(at + WORD, end);
    if (type === "bytes") return `0x${digits}`;
    const bytes = Uint8Array.from(digits.match(/../g) ?? [], (pair) => parseInt(pair, 16));
    return new TextDecoder().decode(bytes);
  }
  const value = wordAt(hex, at);
  if (type === "address") return checksum(`0x${hex.slice(at + 24, at + WORD)}`);
  if (type === "bool") return value !== 0n;
  if (type.startsWith("bytes")) return `0x${hex.slice(at, at + 2 * Number(type.slice(5)))}`;
  if (type === "function") return `0x${hex.slice(at, at + 48)}`;
  return type.startsWith("u") ? value : BigInt.asIntN(256, value);
}
