// Functions of both pages: messages, button actions, dialogs.

import { byId, element } from "./dom.js";

const SHOWN = { good: 6_000, bad: 20_000 }; // milliseconds until a message disappears
let ending = 0;

/** Shows a message for a few seconds; screen readers read it aloud. */
export function say(text, failed = false) {
  const place = byId("message");
  place.textContent = text;
  place.dataset.tone = failed ? "bad" : "good";
  clearTimeout(ending);
  ending = setTimeout(() => place.replaceChildren(), SHOWN[place.dataset.tone]);
}

/** Announces a change to screen readers only. */
export function announce(text) {
  byId("news").textContent = text;
}

/** Runs a button's action: disables the button meanwhile and shows errors as messages. */
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
 * Opens a dialog. Resolves to its form's values if the user agrees, otherwise to null. Without a
 * verb there is no button to agree.
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
