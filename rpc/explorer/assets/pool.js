// The pages of the pool and of the node's accounts.

import { accountsCard } from "./accounts.js";
import { el, keyed, say } from "./dom.js";
import { amount, count, gwei, num } from "./format.js";
import { fromTo, transactionLink } from "./links.js";
import { listen, live } from "./live.js";
import { methodName } from "./names.js";
import { Refusal, callAlone } from "./rpc.js";

const MOST = 200; // transactions that are shown
const MOST_ACCOUNTS = 200;
const EVERY = 1000; // milliseconds

/** Draw the pool into `main` and keep it current; returns a function that stops this. */
export function pool(main) {
  const status = el("p.dim", { text: "Asking the node…" });
  const rows = el("ol.rows");
  main.append(el("h1", { text: "Pool" }), status, el("section.card", { "aria-label": "Waiting transactions" }, rows));
  let [last, reading] = [0, false];
  const read = async () => {
    const content = await callAlone("txpool_content");
    const list = ["pending", "queued"].flatMap((kind) => Object.values(content[kind] ?? {})
      .flatMap((byNonce) => Object.values(byNonce).map((transaction) => ({ kind, transaction }))));
    const more = list.length > MOST ? `, the first ${MOST} are shown` : "";
    say(status, list.length ? `${count(list.length)} transactions${more}.` : "The pool is empty: everything sent is in a slice or a block.");
    rows.parentElement.hidden = !list.length;
    keyed(rows, list.slice(0, MOST), ({ transaction }) => transaction.hash, ({ kind, transaction }) =>
      el("li.transaction", { "data-state": "slice" }, transactionLink(transaction.hash), fromTo(transaction),
        el("span.chip", { text: methodName(transaction) }),
        el("span.dim", { text: `nonce ${num(transaction.nonce)} · ${gwei(transaction.maxFeePerGas ?? transaction.gasPrice)}${kind === "queued" ? " · waits for an earlier nonce" : ""}` }),
        el("span.right", {}, amount(transaction.value, 4))));
  };
  rows.parentElement.hidden = true;
  return listen(() => {
    if (reading || Date.now() - last < EVERY) return;
    reading = true;
    read().catch((error) => say(status, error instanceof Refusal ? `The node does not show its pool: ${error.message}.` : error.message))
      .finally(() => {
        last = Date.now();
        reading = false;
      });
  });
}

/** Draw all accounts into `main`. */
export function accounts(main) {
  const shown = accountsCard({ most: MOST_ACCOUNTS });
  const none = el("p.dim", { text: "This node signs for no accounts." });
  main.append(el("h1", { text: "Accounts" }), none, shown.element);
  return listen(() => {
    shown.draw();
    none.hidden = !shown.element.hidden || !live.online;
  });
}
