// The page of the paid API: buys answers, shows the messages, captures and voids holds.

import { byId, element, short } from "/style/dom.js";
import { act, confirmed, say } from "/style/page.js";
import { get, post } from "/style/server.js";

async function buy(what) {
  const { steps } = await post("/buy", { what });
  byId("steps").replaceChildren(
    ...steps.map(({ title, text, raw }) =>
      element("li", {}, element("strong", { textContent: title }),
        element("p", { className: "story", textContent: text }),
        element("details", {}, element("summary", {}, "As it is sent"),
          element("pre", { className: "raw", textContent: raw })))),
  );
  await show();
  say("Paid and answered.");
}

async function capture(hold) {
  const form = await confirmed(
    { title: "Capture a part?", verb: "Capture", refusal: "Back" },
    element("p", {}, `${hold.held} are held. The captured amount goes to the shop.`),
    element("label", { className: "row" }, "Amount ",
      element("input", { type: "number", name: "amount", min: "0.01", step: "0.01",
        max: hold.left, value: hold.left, required: true })),
  );
  if (!form) return;
  await post(`/holds/${hold.id}/capture`, { amount: form.get("amount") });
  await show();
  say("Captured.");
}

async function release(hold) {
  await post(`/holds/${hold.id}/void`);
  await show();
  say("Released: the uncaptured money is back with the payer.");
}

function card(hold) {
  const button = (name, text, work) =>
    element("button", { type: "button", dataset: { action: name }, textContent: text,
      onclick: (event) => act(event.target, () => work(hold)) });
  return element("li", { className: "card", id: hold.id },
    element("p", { className: "amount" }, hold.authorized,
      element("small", {}, " authorized by ", short(hold.payer))),
    element("p", { className: "story", textContent: `${hold.held} held, ${hold.captured} captured.` }),
    hold.open
      ? element("p", { className: "actions" }, button("capture", "Capture a part", capture),
          button("void", "Release the rest", release))
      : null);
}

async function show() {
  const { holds } = await get("/holds");
  byId("none").hidden = holds.length > 0;
  byId("holds").replaceChildren(...holds.map(card));
}

for (const button of document.querySelectorAll("[data-buy]")) {
  button.addEventListener("click", () => act(button, () => buy(button.dataset.buy)));
}
show().then(() => { document.body.dataset.ready = "yes"; }).catch((error) => say(error.message, true));
