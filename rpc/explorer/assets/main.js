// The explorer: routes, the search, and the state of the connection.

import { address } from "./address.js";
import { accounts, pool } from "./pool.js";
import { block } from "./block.js";
import { el, say, speak } from "./dom.js";
import { count, num } from "./format.js";
import { home } from "./home.js";
import { blocks, transactions } from "./lists.js";
import { listen, live, start } from "./live.js";
import { learnStored } from "./names.js";
import { ownAccounts } from "./accounts.js";
import { call } from "./rpc.js";
import { find, suggest } from "./search.js";
import { transaction } from "./transaction.js";
import { watch } from "./watch.js";

const PAGES = { "": home, pool, accounts, blocks, transactions, block, tx: transaction, address, watch };
const TITLE = "fastevm explorer";

let leave = () => {};
let current = null; // identifies the newest call of `draw`

/** Draw the page that the address names. `again`: the same page with new data. */
async function draw(again = false) {
  const [, name = "", id = ""] = location.hash.slice(1).split("/");
  const turn = (current = {});
  const main = el("main", { id: "main", tabindex: "-1" });
  main.addEventListener("stale", () => current === turn && draw(true));
  leave();
  leave = () => {};
  for (const link of document.querySelectorAll("header nav a")) {
    const isHere = link.getAttribute("href") === `#/${name}`;
    if (isHere) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  let end = () => {};
  const old = document.getElementById("main");
  const insert = () => {
    if (current !== turn || main.isConnected) return;
    const { scrollY } = window;
    document.getElementById("main").replaceWith(main);
    scrollTo(0, again ? scrollY : 0);
    const isTyping = document.activeElement?.id === "query";
    if (!again && old.hasChildNodes() && !isTyping) main.focus({ preventScroll: true });
  };
  const page = Object.hasOwn(PAGES, name) ? PAGES[name] : null;
  const soon = setTimeout(() => !again && insert(), 150); // show a slow page while it loads
  try {
    if (!page) throw new Error("There is no such page.");
    end = (await page(main, decodeURIComponent(id))) ?? end;
  } catch (error) {
    main.append(el("p.bad", { role: "alert", text: error.message }));
  }
  clearTimeout(soon);
  if (current !== turn) return end();
  insert();
  leave = end;
  const heading = main.querySelector("h1")?.textContent ?? "Not found";
  document.title = `${heading}${id ? ` ${id.slice(0, 12)}` : ""} · ${TITLE}`;
  document.body.dataset.page = `${name || "home"} ${id}`.trim();
  if (!again) speak(heading);
}

function drawStatus() {
  const status = document.getElementById("status");
  const [head] = live.blocks;
  const text = status.querySelector("[data-part=text]");
  const notice = document.getElementById("notice");
  status.dataset.state = live.online ? "live" : live.fault ? "away" : "wait";
  say(text, !live.online ? (live.fault ? "no connection" : "connecting") : head ? `block ${count(num(head.number))}` : "live");
  status.title = live.chain ? `chain ${live.chain.id}, ${live.chain.client ?? "unknown client"}` : "";
  notice.hidden = live.online || !live.fault;
  if (!notice.hidden) say(notice, live.fault);
}

function setUpSearch() {
  const form = document.getElementById("search");
  const query = document.getElementById("query");
  query.addEventListener("focus", () => suggest(document.getElementById("names")));
  query.addEventListener("input", () => query.setCustomValidity(""));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      location.hash = await find(query.value);
      query.value = "";
      query.blur();
    } catch (error) {
      query.setCustomValidity(error.message);
      query.reportValidity();
    }
  });
  addEventListener("keydown", (event) => {
    const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName);
    if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      query.focus();
    }
  });
}

addEventListener("hashchange", () => draw());
setUpSearch();
start();
listen(drawStatus);
try {
  await Promise.all([ownAccounts(), call("eth_chainId").then((id) => {
    live.chain ??= { id: num(id), client: null };
    learnStored();
  })]);
} catch (error) {
  live.fault = error.message;
}
draw();
document.body.dataset.ready = "yes";
