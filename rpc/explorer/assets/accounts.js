// The node's accounts with their balances, and a faucet that pays from them.

import { card, el, keyed, say } from "./dom.js";
import { amount, big, checksum, count, num } from "./format.js";
import { addressLink } from "./links.js";
import { live } from "./live.js";
import { accountNames, impersonated } from "./names.js";
import { call, tryCall } from "./rpc.js";
import { weiOf } from "./abi.js";

const EVERY = 1000; // milliseconds between polls of the balances
const GIFT = "1"; // ether
let known = null;

/** The accounts that the node signs for: lower-case addresses; none on most public nodes. */
export async function ownAccounts() {
  if (!known) {
    const lists = await Promise.all([tryCall("eth_accounts"), tryCall("personal_listAccounts")]);
    const [all, held] = lists.map((list) => list?.map((address) => address.toLowerCase()));
    known = all ?? [];
    (held ?? known).forEach((address, i) => accountNames.set(address, `account ${i}`));
    known.filter((address) => !accountNames.has(address)).forEach((address) => impersonated.add(address));
  }
  return known;
}

/** The block tag to read: `pending` if the node has slices, else `latest`. */
export const newest = () => (live.sliced ? "pending" : "latest");

/** Send a transaction from an account of the node; returns its hash. */
export const sendFrom = (from, members) =>
  call("eth_sendTransaction", { from, ...members });

/** Pay wei to an address from the richest other account of the node; returns the hash. */
export async function pay(address, wei) {
  const others = (await ownAccounts()).filter((other) => other !== address.toLowerCase());
  const balances = await Promise.all(others.map((other) => call("eth_getBalance", other, newest())));
  const best = balances.reduce((top, b, i) => (big(b) > big(balances[top]) ? i : top), 0);
  if (!others.length || big(balances[best]) <= wei) throw new Error("no account of the node has so much");
  return sendFrom(others[best], { to: address, value: `0x${wei.toString(16)}` });
}

/** A form that pays; without an `address` it asks for one. Null on a node without accounts. */
export async function faucet(address = null) {
  if (!(await ownAccounts()).length) return null;
  const to = el("input", { "aria-label": "Address to pay", placeholder: "0x… address", spellcheck: "false", autocomplete: "off" });
  const sum = el("input.short", { "aria-label": "Ether to pay", value: GIFT, inputmode: "decimal" });
  const output = el("output", { "aria-live": "polite" });
  const button = el("button.primary", { type: "submit", text: "Faucet" });
  return el("form.faucet", {
    onsubmit: async (event) => {
      event.preventDefault();
      button.disabled = true;
      try {
        const recipient = (address ?? to.value).trim();
        if (!/^0x[0-9a-fA-F]{40}$/.test(recipient)) throw new Error("expected an address of 0x and 40 digits");
        const hash = await pay(recipient, weiOf(sum.value));
        output.replaceChildren(`Sent ${sum.value} ETH: `, el("a", { href: `#/tx/${hash}`, text: "transaction" }));
      } catch (error) {
        output.replaceChildren(el("span.bad", { text: error.message }));
      }
      button.disabled = false;
    },
  }, address ? null : to, sum, el("span.unit", { text: "ETH" }), button, output);
}

/** A card of accounts: its element, and `draw` to bring it up to date. */
export function accountsCard({ most }) {
  const rows = el("ol.rows");
  const element = card("Accounts", rows);
  element.hidden = true;
  let last = 0;
  let reading = false;
  faucet().then((form) => form && element.insertBefore(form, rows)).catch(() => {});
  const read = async () => {
    const all = (await ownAccounts()).slice(0, most);
    const answers = await Promise.all(all.map((address) => Promise.all([
      call("eth_getBalance", address, newest()),
      call("eth_getTransactionCount", address, newest())])));
    const items = all.map((address, i) => ({ address, balance: answers[i][0], nonce: answers[i][1] }));
    element.hidden = !items.length;
    keyed(rows, items, ({ address }) => address,
      ({ address }) => el("li", {}, addressLink(address), el("code.dim.wide", { text: checksum(address) }),
        el("span.dim", { title: "nonce" }), el("span.right")),
      (row, { balance, nonce }) => {
        say(row.children[2], `nonce ${count(num(nonce))}`);
        const shown = amount(balance, 4);
        if (row.lastChild.textContent !== shown.textContent) row.lastChild.replaceChildren(shown);
      });
    if (known.length > most) {
      element.more ??= element.appendChild(el("p", {}, el("a", { href: "#/accounts", text: `All ${known.length} accounts` })));
    }
  };
  const draw = () => {
    if (reading || Date.now() - last < EVERY) return;
    reading = true;
    read().catch(() => {}).finally(() => {
      last = Date.now();
      reading = false;
    });
  };
  return { element, draw };
}
