// The buyer's page: choose, connect a wallet, sign an authorization, follow the order.

import { byId, countdown, element, keepCounting, morph } from "./dom.js";
import { cause, chip, part, story, terms, trail } from "./order.js";
import { act, announce, say } from "./page.js";
import { Pulse, follow, get, post } from "./server.js";
import { Wallet, wallets } from "./wallet.js";

const KEPT = "merchant-demo-orders"; // ids of this browser's orders
const MOST_KEPT = 20;

let shop = null;
let wallet = null;
let stream = null;
const serials = new Map(); // order id -> serial number of the view that is shown
const pulse = new Pulse(byId("pulse"));

function chosen() {
  const form = new FormData(byId("order-form"));
  const item = shop.items.find(({ id }) => id === form.get("item"));
  const quantity = Number(form.get("quantity"));
  const fits = Number.isInteger(quantity) && quantity >= 1 && quantity <= shop.mostOfOne;
  return { item, quantity: fits ? quantity : null };
}

function money(units) {
  const scale = 10 ** shop.decimals;
  return `${(units / scale).toFixed(2)} ${shop.symbol}`;
}

function refresh() {
  const { item, quantity } = chosen();
  const ready = item && quantity;
  byId("total").textContent = ready ? money(item.price * quantity) : "–";
  byId("authorize").disabled = !ready || !wallet;
  byId("authorize-hint").hidden = Boolean(wallet);
}

function showItems() {
  byId("items").append(
    ...shop.items.map((item, index) =>
      element(
        "label",
        { className: "choice" },
        element("input", { type: "radio", name: "item", value: item.id, checked: index === 0 }),
        element("span", {}, element("strong", {}, item.name), element("small", {}, item.note)),
        element("b", { className: "price", textContent: money(item.price) }),
      ),
    ),
  );
  byId("quantity").max = shop.mostOfOne;
}

function showWallets() {
  const list = byId("wallet");
  list.replaceChildren(
    ...wallets().map(([id, { name }]) => element("option", { value: id, textContent: name })),
  );
  const none = list.options.length === 0;
  byId("connect").disabled = none;
  if (none) say("No wallet was found in this browser.", true);
}

async function connect() {
  const entry = wallets().find(([id]) => id === byId("wallet").value);
  if (!entry) throw new Error("No wallet was found in this browser.");
  wallet = await Wallet.connect(entry[1].provider, shop.chain);
  await showBalance();
  say("Wallet connected.");
}

async function showBalance() {
  const { balance } = await get(`/api/balance/${wallet.account}`);
  byId("account").replaceChildren(
    element("code", { textContent: wallet.account }), ` holds ${money(balance)}`,
  );
}

async function authorize() {
  const { item, quantity } = chosen();
  const { order, typedData } = await post("/api/orders", {
    item: item.id,
    quantity,
    payer: wallet.account,
  });
  keep(order.id);
  show(order);
  say("Please look at the terms in your wallet and sign them.");
  await sign(order.id, typedData);
}

async function sign(id, typedData) {
  const signature = await wallet.sign(typedData);
  show((await post(`/api/orders/${id}/signature`, { signature })).order);
  say("Authorized. Nothing was charged yet: that happens when the order ships.");
}

async function signAgain(id) {
  const { typedData } = await get(`/api/orders/${id}/authorization`);
  await sign(id, typedData);
}

async function cancel(id) {
  const { typedData } = await get(`/api/orders/${id}/cancellation`);
  const signature = await wallet.sign(typedData);
  show((await post(`/api/orders/${id}/cancellation`, { signature })).order);
  say("Cancelled: the shop submits your cancellation to the chain.");
}

function kept() {
  try {
    const found = JSON.parse(localStorage.getItem(KEPT));
    return Array.isArray(found) ? found.filter((id) => typeof id === "string") : [];
  } catch {
    return [];
  }
}

function keep(id) {
  const ids = [id, ...kept().filter((one) => one !== id)].slice(0, MOST_KEPT);
  localStorage.setItem(KEPT, JSON.stringify(ids));
  watch();
}

function buttons(order) {
  const button = (action, text, work) =>
    element("button", {
      type: "button",
      dataset: { action },
      textContent: text,
      onclick: (event) =>
        act(event.target, async () => {
          if (!wallet) throw new Error("Connect your wallet first.");
          await work(order.id);
        }),
    });
  const offered = [];
  if (order.actions.includes("sign")) offered.push(button("sign", "Sign", signAgain));
  if (order.actions.includes("cancel")) offered.push(button("cancel", "Sign a cancellation", cancel));
  return offered.length ? element("p", { className: "actions" }, ...offered) : null;
}

function card(order) {
  return element(
    "li",
    { className: "card", id: `order-${order.id}`, tabIndex: -1,
      dataset: { state: order.state, label: order.label } },
    element("h3", {}, `${order.quantity} × ${order.item}`, " ", chip(order)),
    element("p", { className: "amount" }, order.amountText,
      order.expires
        ? element("small", {}, " authorization ends ", countdown(order.validBefore))
        : null),
    story(order),
    buttons(order),
    cause(order),
    order.cancelAsked
      ? element("p", { className: "notice" }, "The shop asks you to cancel this order.")
      : null,
    part("terms", "Terms", terms(order)),
    part("trail", "What happened", trail(order)),
  );
}

function show(order) {
  if ((serials.get(order.id) ?? 0) > order.serial) return; // an older view that arrived late
  serials.set(order.id, order.serial);
  const fresh = card(order);
  const old = document.getElementById(`order-${order.id}`);
  if (old && old.dataset.label !== order.label) announce(`${order.item}: ${order.label}`);
  if (old) morph(old, fresh);
  else byId("orders").prepend(fresh);
  byId("orders-section").hidden = false;
  if (wallet) showBalance().catch(() => {}); // the next change of an order tries again
}

function watch() {
  stream?.close();
  const query = kept().map(encodeURIComponent).join(",");
  stream = follow(`/events?orders=${query}`, { slice: (slice) => pulse.slice(slice), order: show });
}

async function start() {
  shop = await get("/api/shop");
  showItems();
  showWallets();
  byId("order-form").addEventListener("input", refresh);
  byId("order-form").addEventListener("submit", (event) => {
    event.preventDefault();
    act(byId("authorize"), authorize).then(refresh);
  });
  byId("connect").addEventListener("click", (event) =>
    act(event.target, connect).then(refresh));
  window.addEventListener("eip6963:announceProvider", () => setTimeout(showWallets));
  keepCounting();
  refresh();
  watch();
  document.body.dataset.ready = "yes";
}

start().catch((error) => say(error.message, true));
