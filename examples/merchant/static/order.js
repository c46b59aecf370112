// What buyer and merchant both see of an order: its state in words, its terms, its history.

import { clock, element, short } from "./dom.js";

/** A transaction's hash with a link to what the chain knows of it. */
export function explorer(hash) {
  if (!hash) return null;
  return element("a", { href: `/tx/${hash}`, target: "_blank", rel: "noopener" }, short(hash));
}

/** The state as a chip: a word and a sign, so that colour is never the only difference. */
export function chip(order) {
  return element("span", { className: "chip", dataset: { tone: order.tone } }, order.label);
}

/** The sentence that says what the state means. */
export function story(order) {
  return element("p", { className: "story", textContent: order.sentence });
}

/** What is wrong, where something is. It stands below the buttons, which so stay where they are. */
export function cause(order) {
  if (!order.cause) return null;
  const { effect, text } = order.cause;
  return element("p", { className: "reason" }, element("strong", {}, `${effect}: `), text);
}

/** The agreed terms. */
export function terms(order) {
  const row = (name, ...value) => [element("dt", { textContent: name }), element("dd", {}, ...value)];
  return element(
    "dl",
    { className: "terms" },
    ...row("Payer", short(order.payer)),
    ...row("Recipient", short(order.recipient)),
    ...row("Window", `${clock(order.validAfter)} to ${clock(order.validBefore)}`),
    ...row("One-time nonce", short(order.nonce)),
    ...(order.settlement
      ? row("Settled in", `block ${order.settlement.block}, `,
        explorer(order.settlement.hash))
      : []),
  );
}

/** Everything that happened, oldest first. */
export function trail(order) {
  return element(
    "ol",
    { className: "trail" },
    ...order.trail.map((entry) =>
      element("li", {},
        element("time", { textContent: clock(entry.at) }), " ",
        element("span", {}, entry.text)),
    ),
  );
}

/** A part that can be opened. */
export function part(name, title, ...children) {
  return element("details", { dataset: { part: name } },
    element("summary", { textContent: title }), ...children);
}
