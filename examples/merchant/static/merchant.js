// The merchant's page: every order with its state, its checks at the newest slice, and what to do.

import { byId, countdown, element, keepCounting, morph, short } from "./dom.js";
import { cause, chip, part, story, terms, trail } from "./order.js";
import { act, announce, confirmed, say } from "./page.js";
import { Pulse, follow, post } from "./server.js";

const orders = new Map();
const pulse = new Pulse(byId("pulse"));

const ACTIONS = {
  capture: { text: "Capture", className: "primary", run: (id) => post(`/api/orders/${id}/capture`) },
  ask_cancel: {
    text: "Ask buyer to cancel",
    run: (id) => post(`/api/orders/${id}/ask-cancel`),
  },
  void: { text: "Void", run: confirmedVoid },
  refund: { text: "Refund info", run: (id) => refund(orders.get(id)) },
};

/** Runs a button's request and shows what came of it. */
async function run(button, work) {
  const told = await act(button, work);
  if (told?.message) say(told.message);
  if (told?.order) show(told.order);
}

async function confirmedVoid(id) {
  const sure = await confirmed(
    { title: "Void this order?", verb: "Void", refusal: "Back" },
    element("p", {}, "The shop forgets the signature and never submits it. The token does not know: " +
      "the signature stays valid until it expires, for whoever has a copy. Only a cancellation " +
      "signed by the buyer ends it at once."),
  );
  return sure ? post(`/api/orders/${id}/void`) : null;
}

async function refund(order) {
  const { to, token, data } = order.refund;
  await confirmed(
    { title: "How to refund", refusal: "Close" },
    element("p", {}, "A capture cannot be undone. A refund is a transfer of its own, from the shop " +
      "to the payer:"),
    element("dl", { className: "terms" },
      element("dt", { textContent: "To" }), element("dd", {}, element("code", {}, to)),
      element("dt", { textContent: "Amount" }), element("dd", { textContent: order.amountText }),
      element("dt", { textContent: "Token" }), element("dd", {}, element("code", {}, token)),
      element("dt", { textContent: "Call data" }), element("dd", {}, element("code", {}, data))),
  );
  return null;
}

function checks(order) {
  const list = order.checks.map((check) =>
    element("li", { dataset: { verdict: check.verdict } },
      element("strong", { textContent: check.title }), " ", check.text));
  const failed = order.checks.filter(({ verdict }) => verdict === "failed").length;
  const title = failed
    ? `Checks at the newest slice: ${failed} failing`
    : "Checks at the newest slice: all pass";
  return list.length ? part("checks", title, element("ul", { className: "checks" }, ...list)) : null;
}

function transactions(order) {
  if (!order.transactions.length) return null;
  const list = order.transactions.map((one) =>
    element("li", {}, `${one.purpose}: ${one.progress} `, short(one.hash),
      one.reason ? element("span", { className: "reason" }, ` ${one.reason}`) : null));
  return part("transactions", "Transactions", element("ul", { className: "trail" }, ...list));
}

function card(order) {
  const buttons = order.actions
    .filter((name) => name in ACTIONS)
    .map((name) =>
      element("button", {
        type: "button",
        className: ACTIONS[name].className ?? "",
        dataset: { action: name },
        textContent: ACTIONS[name].text,
        "aria-label": `${ACTIONS[name].text}: order ${order.id}`,
        onclick: (event) => run(event.target, () => ACTIONS[name].run(order.id)),
      }),
    );
  return element(
    "li",
    { className: "card", id: `order-${order.id}`, tabIndex: -1, dataset: { state: order.state } },
    element("h3", {},
      element("span", {}, `${order.quantity} × ${order.item} `, element("small", {}, order.id)),
      chip(order)),
    element("p", { className: "amount" }, order.amountText,
      element("small", {}, " from ", short(order.payer),
        ...(order.expires ? [", authorization ends ", countdown(order.validBefore)] : []))),
    story(order),
    buttons.length ? element("p", { className: "actions" }, ...buttons) : null,
    cause(order),
    order.cancelAsked
      ? element("p", { className: "notice" }, "Waiting for the buyer to sign a cancellation.")
      : null,
    checks(order),
    transactions(order),
    part("terms", "Terms", terms(order)),
    part("trail", "What happened", trail(order)),
  );
}

function show(order) {
  const old = document.getElementById(`order-${order.id}`);
  const before = orders.get(order.id);
  if (before && before.serial > order.serial) return;
  orders.set(order.id, order);
  if (old) morph(old, card(order));
  else byId("orders").append(card(order)); // at the end: nothing moves under a finger
  if (before && before.state !== order.state) {
    announce(`Order ${order.id}: ${order.label}`);
  }
  summarize();
}

function summarize() {
  byId("none").hidden = orders.size > 0;
  for (const tile of document.querySelectorAll("[data-sum]")) {
    const states = tile.dataset.sum.split(" ");
    const chosen = [...orders.values()].filter(({ state }) => states.includes(state));
    const sum = chosen.reduce((total, { amount }) => total + BigInt(amount), 0n);
    const scale = 10n ** BigInt(document.body.dataset.decimals ?? 6);
    const cents = (sum * 100n) / scale;
    tile.querySelector("b").textContent =
      `${cents / 100n}.${String(cents % 100n).padStart(2, "0")}`;
    tile.querySelector("small").textContent =
      chosen.length === 1 ? "1 order" : `${chosen.length} orders`;
  }
}

function start() {
  for (const button of document.querySelectorAll("[data-demo]")) {
    button.addEventListener("click", () =>
      run(button, () => post(`/demo/${button.dataset.demo}`)));
  }
  follow("/merchant/events", { slice: (slice) => pulse.slice(slice), order: show });
  keepCounting();
  document.body.dataset.ready = "yes";
}

start();
