// The merchant's page: every order with its state, its checks at the newest slice, and what to do.

import { byId, countdown, element, keepCounting, replaceKeeping, short } from "./dom.js";
import { chip, part, story, terms, trail } from "./order.js";
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

function say(text, failed = false) {
  const place = byId("message");
  place.textContent = text;
  place.dataset.tone = failed ? "bad" : "good";
}

async function act(button, work) {
  button.disabled = true;
  button.setAttribute("aria-busy", "true");
  try {
    const told = await work();
    if (told?.message) say(told.message);
    if (told?.order) show(told.order);
  } catch (error) {
    say(error.message, true);
  } finally {
    button.removeAttribute("aria-busy");
    button.disabled = false;
  }
}

/** A dialog with its own close button; the verb, if there is one, closes it with "yes". */
function dialog(title, verb, ...content) {
  const close = element("button", { value: "no", textContent: verb ? "Back" : "Close" });
  const form = element(
    "form",
    { method: "dialog" },
    element("h2", { textContent: title, id: "dialog-title" }),
    ...content,
    element("p", { className: "actions" },
      verb ? element("button", { value: "yes", className: "primary", textContent: verb }) : null,
      close),
  );
  const made = element("dialog", { "aria-labelledby": "dialog-title" }, form);
  document.body.append(made);
  made.showModal();
  return new Promise((resolve) => {
    made.addEventListener("close", () => {
      made.remove();
      resolve(made.returnValue === "yes");
    });
  });
}

async function confirmedVoid(id) {
  const sure = await dialog(
    "Void this order?",
    "Void",
    element("p", {}, "The shop forgets the signature and never submits it. The token does not know: " +
      "the signature stays valid until it expires, for whoever has a copy. Only a cancellation " +
      "signed by the buyer ends it at once."),
  );
  return sure ? post(`/api/orders/${id}/void`) : null;
}

async function refund(order) {
  const { to, token, data } = order.refund;
  await dialog(
    "How to refund",
    null,
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
        onclick: (event) => act(event.target, () => ACTIONS[name].run(order.id)),
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
    ...story(order),
    order.cancelAsked
      ? element("p", { className: "notice" }, "Waiting for the buyer to sign a cancellation.")
      : null,
    buttons.length ? element("p", { className: "actions" }, ...buttons) : null,
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
  if (old) replaceKeeping(old, card(order));
  else byId("orders").prepend(card(order));
  if (before && before.state !== order.state) {
    byId("news").textContent = `Order ${order.id}: ${order.label}`;
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
      act(button, () => post(`/demo/${button.dataset.demo}`)));
  }
  follow("/merchant/events", { slice: (slice) => pulse.slice(slice), order: show });
  keepCounting();
  document.body.dataset.ready = "yes";
}

start();
