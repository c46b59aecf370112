// The merchant's page: every order with its state, its checks at the newest slice, and its actions.

import { byId, countdown, element, keepCounting, morph, short } from "./dom.js";
import { cause, chip, explorer, part, story, terms, trail } from "./order.js";
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
  refund: { text: "Refund", run: (id) => refund(orders.get(id)) },
};

/** Runs a button's request and shows the result. */
async function run(button, work) {
  const result = await act(button, work);
  if (result?.message) say(result.message);
  if (result?.order) show(result.order);
}

async function confirmedVoid(id) {
  const sure = await confirmed(
    { title: "Void this order?", verb: "Void", refusal: "Back" },
    element("p", {}, "The shop forgets the signature and never submits it. The token does not know: " +
      "the signature stays valid until it expires, and anybody who has a copy can use it. Only a " +
      "cancellation signed by the buyer ends it immediately."),
  );
  return sure ? post(`/api/orders/${id}/void`) : null;
}

async function refund(order) {
  const left = Number(order.refundable) / 10 ** Number(document.body.dataset.decimals ?? 6);
  const form = await confirmed(
    { title: "Refund this order?", verb: "Refund", refusal: "Back" },
    element("p", {}, "The shop transfers the amount to the buyer's account."),
    element("dl", { className: "terms" },
      element("dt", { textContent: "To" }), element("dd", {}, short(order.payer)),
      element("dt", { textContent: "Refundable" }),
      element("dd", { textContent: order.refundableText }),
      ...(order.refundedText ? [element("dt", { textContent: "Refunded before" }),
        element("dd", { textContent: order.refundedText })] : [])),
    element("label", { className: "row" }, "Amount ",
      element("input", { type: "number", name: "amount", min: "0.01", max: left, step: "0.01",
        value: left.toFixed(2), required: true })),
  );
  return form ? post(`/api/orders/${order.id}/refund`, { amount: form.get("amount") }) : null;
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
    element("li", {}, `${one.purpose}: ${one.progress} `, explorer(one.hash),
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
  const cell = (name, title, ...children) =>
    element("td", { className: name, "data-title": title }, ...children);
  const parts = [checks(order), transactions(order), part("terms", "Terms", terms(order)),
    part("trail", "What happened", trail(order))];
  return element(
    "tbody",
    { className: "order", id: `order-${order.id}`, tabIndex: -1,
      dataset: { state: order.state } },
    element("tr", { className: "line" },
      cell("what", "Order", element("strong", {}, `${order.quantity} × ${order.item} `),
        element("small", {}, order.id)),
      cell("who", "Buyer", short(order.payer)),
      cell("number amount", "Amount", order.amountText,
        order.refundedText ? element("small", {}, ` ${order.refundedText} refunded`) : null),
      cell("how", "State", chip(order),
        ...(order.expires ? [element("small", {}, " ends ", countdown(order.validBefore))] : [])),
      cell("do", "Do", element("p", { className: "actions" }, ...buttons))),
    element("tr", { className: "more" },
      element("td", { colSpan: 5 }, story(order), cause(order),
        order.cancelAsked
          ? element("p", { className: "notice" }, "Waiting for the buyer to sign a cancellation.")
          : null,
        element("div", { className: "parts" }, ...parts))),
  );
}

/** Whether an order matches the filter and the search. */
function wanted(order) {
  const states = byId("filter").value.split(" ").filter(Boolean);
  const text = byId("search").value.trim().toLowerCase();
  const hashes = order.transactions.map(({ hash }) => hash ?? "");
  const words = [order.id, order.item, order.payer, order.label, order.amountText, ...hashes];
  const found = !text || words.some((word) => word.toLowerCase().includes(text));
  return found && (!states.length || states.includes(order.state));
}

/** Hides orders that do not match the filter and the search. */
function sift() {
  let shown = 0;
  for (const order of orders.values()) {
    const row = document.getElementById(`order-${order.id}`);
    row.hidden = !wanted(order);
    shown += row.hidden ? 0 : 1;
  }
  byId("shown").textContent = `${shown} of ${orders.size}`;
  const ready = capturable().length;
  byId("capture-all").disabled = !ready;
  byId("capture-all").textContent = ready ? `Capture all (${ready})` : "Capture all";
}

/** Returns the visible orders whose capture would succeed now. */
function capturable() {
  return [...orders.values()].filter((order) =>
    order.actions.includes("capture") && wanted(order) &&
    !order.checks.some(({ verdict }) => verdict === "failed"));
}

async function captureAll() {
  const chosen = capturable();
  const sum = chosen.reduce((total, { amount }) => total + BigInt(amount), 0n);
  const sure = await confirmed(
    { title: chosen.length === 1 ? "Capture 1 order?" : `Capture ${chosen.length} orders?`, verb: "Capture all", refusal: "Back" },
    element("p", {}, `The shop collects ${cents(sum)} USDC from their buyers.`),
  );
  return sure ? post("/api/capture", { orders: chosen.map(({ id }) => id) }) : null;
}

/** Formats units as an amount with two decimals. */
function cents(units) {
  const scale = 10n ** BigInt(document.body.dataset.decimals ?? 6);
  const found = (units * 100n) / scale;
  return `${found / 100n}.${String(found % 100n).padStart(2, "0")}`;
}

function show(order) {
  const old = document.getElementById(`order-${order.id}`);
  const before = orders.get(order.id);
  if (before && before.serial > order.serial) return;
  orders.set(order.id, order);
  if (old) morph(old, card(order));
  else byId("orders-end").before(card(order)); // at the end, so that existing rows do not move
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
    tile.querySelector("b").textContent = cents(sum);
    tile.querySelector("small").textContent =
      chosen.length === 1 ? "1 order" : `${chosen.length} orders`;
  }
  sift();
}

function start() {
  for (const button of document.querySelectorAll("[data-demo]")) {
    button.addEventListener("click", () =>
      run(button, () => post(`/demo/${button.dataset.demo}`)));
  }
  byId("tools").addEventListener("submit", (event) => event.preventDefault());
  byId("search").addEventListener("input", sift);
  byId("filter").addEventListener("input", sift);
  byId("capture-all").addEventListener("click", (event) => run(event.target, captureAll).then(sift));
  follow("/merchant/events", { slice: (slice) => pulse.slice(slice), order: show });
  keepCounting();
  document.body.dataset.ready = "yes";
}

start();
