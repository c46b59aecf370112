// What both pages do: say how something went, run what a button does, ask in a dialog.

import { byId, element } from "./dom.js";

const SHOWN = { good: 6_000, bad: 20_000 }; // milliseconds that a message stays
let ending = 0;

/** Shows a sentence over the page for a while; screen readers say it. */
export function say(text, failed = false) {
  const place = byId("message");
  place.textContent = text;
  place.dataset.tone = failed ? "bad" : "good";
  clearTimeout(ending);
  ending = setTimeout(() => place.replaceChildren(), SHOWN[place.dataset.tone]);
}

/** Tells screen readers what the page shows elsewhere. */
export function announce(text) {
  byId("news").textContent = text;
}

/** Runs what a button does: no second click meanwhile, failures in words. */
export async function act(button, work) {
  button.disabled = true;
  button.setAttribute("aria-busy", "true");
  try {
    return await work();
  } catch (error) {
    say(error.message, true);
    return null;
  } finally {
    button.removeAttribute("aria-busy");
    button.disabled = false;
  }
}

/**
 * Asks in a dialog: its form's values when the reader agreed, null when not. Without a verb there is
 * nothing to agree to.
 */
export function confirmed({ title, verb, refusal, className }, ...content) {
  const form = element(
    "form",
    { method: "dialog" },
    element("h2", { textContent: title, id: "dialog-title" }),
    ...content,
    element(
      "p",
      { className: "actions" },
      verb ? element("button", { value: "yes", className: "primary", textContent: verb }) : null,
      element("button", { value: "no", formNoValidate: true, textContent: refusal }),
    ),
  );
  const dialog = element("dialog", { className, "aria-labelledby": "dialog-title" }, form);
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes" ? new FormData(form) : null);
    });
  });
}
