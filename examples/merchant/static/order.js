// Parts of an order that both pages show: state, terms, history.

import { clock, element, short } from "./dom.js";

/** Creates a link from a transaction hash to its page. */
export function explorer(hash) {
  if (!hash) return null;
  return element("a", { href: `/tx/${hash}`, target: "_blank", rel: "noopener" }, short(hash));
}

/** Creates a label for the state: text and symbol, so that colour is not the only difference. */
export function chip(order) {
  return element("span", { className: "chip", dataset: { tone: order.tone } }, order.label);
}

/** Creates the sentence that explains the state. */
export function story(order) {
  return element("p", { className: "story", textContent: order.sentence });
}

/** Creates the text of a problem, if any. It is below the buttons, so that they do not move. */
export function cause(order) {
  if (!order.cause) return null;
  const { effect, text } = order.cause;
  return element("p", { className: "reason" }, element("strong", {}, `${effect}: `), text);
}

/** Creates the list of terms. */
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

/** Creates the history, oldest first. */
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

/** Creates a collapsible part. */
export function part(name, title, ...children) {
  return element("details", { dataset: { part: name } },
    element("summary", { textContent: title }), ...children);
}
