// Numbers, amounts, times and hashes for people.

import { el } from "./dom.js";
import { keccak } from "./keccak.js";

export const ZERO_HASH = `0x${"0".repeat(64)}`;
const checksums = new Map();
const KEPT_CHECKSUMS = 4096;

/** A quantity as BigInt; null stays null. */
export const big = (value) => (value === null || value === undefined ? null : BigInt(value));

/** A quantity as a number. */
export const num = (value) => Number(value ?? 0);

/** 1,234,567 */
export const count = (value) => BigInt(value).toLocaleString("en");

/** Wei in ether, with at most `digits` digits behind the point, rounded down. */
export function ether(wei, digits = 6) {
  return fixed(BigInt(wei), 18, digits);
}

/** Wei in gwei. */
export const gwei = (wei) => `${fixed(BigInt(wei), 9, 4)} gwei`;

/** An integer that counts units of 10^-`decimals`, as a decimal text. */
export function fixed(value, decimals, digits = decimals) {
  const sign = value < 0n ? "−" : "";
  const size = value < 0n ? -value : value;
  const unit = 10n ** BigInt(decimals);
  const rest = (size % unit).toString().padStart(decimals, "0");
  const shown = rest.slice(0, digits).replace(/0+$/, "");
  if (size !== 0n && size < unit && !shown) return `${sign}<${`0.${"0".repeat(digits - 1)}1`}`;
  return `${sign}${(size / unit).toLocaleString("en")}${shown ? `.${shown}` : ""}`;
}

/** An amount of wei with its unit; the exact number is its title. */
export function amount(wei, digits = 6) {
  const exact = `${BigInt(wei).toLocaleString("en")} wei`;
  const size = BigInt(wei) < 0n ? -BigInt(wei) : BigInt(wei);
  const text = size && size < 10n ** 11n ? exact : `${ether(wei, digits)} ETH`;
  return el("span.amount", { title: exact, text });
}

/** 0x12345678…cdef */
export const short = (hex) => (hex.length > 18 ? `${hex.slice(0, 8)}…${hex.slice(-6)}` : hex);

/** An address with the capitals of its checksum (EIP-55). */
export function checksum(address) {
  const lower = address.toLowerCase();
  let found = checksums.get(lower);
  if (!found) {
    const hash = keccak(new TextEncoder().encode(lower.slice(2)));
    const digit = (c, i) => (parseInt(hash[i + 2], 16) > 7 ? c.toUpperCase() : c);
    found = `0x${[...lower.slice(2)].map(digit).join("")}`;
    if (checksums.size >= KEPT_CHECKSUMS) checksums.clear();
    checksums.set(lower, found);
  }
  return found;
}

/** How long ago a time in seconds was; "now" for a future time, which a block under construction may have. */
export function ago(seconds) {
  const passed = Math.round(Date.now() / 1000 - seconds);
  if (passed < 0) return "now";
  if (passed < 90) return `${passed} s ago`;
  if (passed < 5400) return `${Math.round(passed / 60)} min ago`;
  if (passed < 172800) return `${Math.round(passed / 3600)} h ago`;
  return new Date(seconds * 1000).toISOString().slice(0, 10);
}

/** An element that shows how long ago a time was; it is updated every second. */
export function age(seconds) {
  const date = new Date(seconds * 1000);
  const full = Number.isNaN(date.getTime()) ? "" : date.toISOString();
  return el("time", { datetime: full, title: utc(seconds), "data-at": seconds, text: ago(seconds) });
}

/** A time in seconds as `2026-11-27 10:22:33 UTC`. */
export function utc(seconds) {
  const date = new Date(seconds * 1000);
  return Number.isNaN(date.getTime()) ? "" : `${date.toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

/** An absolute time, and how long ago it was. */
export const moment = (seconds) => el("span.moment", {}, `${utc(seconds)} `, el("small", {}, age(seconds)));

setInterval(() => {
  for (const shown of document.querySelectorAll("time[data-at]")) {
    const text = ago(Number(shown.dataset.at));
    if (shown.textContent !== text) shown.textContent = text;
  }
}, 1000);

/** How many bytes a hex text stands for. */
export const sizeOf = (hex) => (hex.length - 2) / 2;
