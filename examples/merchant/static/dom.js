// Helpers for building pages. Text is inserted as text, never as markup.

/** Creates an element with properties (also `dataset` and `aria-*`) and children; skips null. */
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "dataset") Object.assign(made.dataset, value);
    else if (name in made && !name.includes("-")) made[name] = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

/** Returns the element with an id; throws if the page has none. */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found;
}

/** Abbreviates hex as 0x1234…cdef; the full text is in the title. */
export function short(hex) {
  const text = hex.length > 14 ? `${hex.slice(0, 6)}…${hex.slice(-4)}` : hex;
  return element("code", { title: hex, textContent: text });
}

/** Returns "in 14 min", "in 40 s" or "ended" for a Unix time in seconds. */
export function until(time) {
  const left = Math.ceil(time - Date.now() / 1000);
  if (left <= 0) return "ended";
  return left >= 120 ? `in ${Math.floor(left / 60)} min` : `in ${left} s`;
}

/** Formats a Unix time in seconds as local time. */
export function clock(time) {
  return new Date(time * 1000).toLocaleTimeString([], { timeStyle: "medium" });
}

/** Creates an element that counts down to a time. */
export function countdown(time) {
  return element("span", { dataset: { until: time }, textContent: until(time) });
}

/** Updates all countdowns every second. */
export function keepCounting() {
  setInterval(() => {
    for (const found of document.querySelectorAll("[data-until]")) {
      found.textContent = until(Number(found.dataset.until));
    }
  }, 1000);
}

// Attributes set by the user or a running action; a new view does not reset them.
const KEPT = new Set(["open", "disabled", "aria-busy"]);

/**
 * Updates `old` to look like `fresh` but keeps every element that both have, so that pressed buttons,
 * open details and the focus are not lost. The old event handlers stay, so they must not capture
 * values that change.
 */
export function morph(old, fresh) {
  if (kindOf(old) !== kindOf(fresh)) {
    old.replaceWith(fresh);
  } else if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
  } else {
    morphAttributes(old, fresh);
    morphChildren(old, fresh);
  }
}

function morphAttributes(old, fresh) {
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !KEPT.has(name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
}

function morphChildren(old, fresh) {
  let place = old.firstChild;
  const dropUntil = (end) => {
    while (place !== end) {
      const gone = place;
      place = place.nextSibling;
      gone.remove();
    }
  };
  for (const child of [...fresh.childNodes]) {
    let twin = place;
    while (twin && kindOf(twin) !== kindOf(child)) twin = twin.nextSibling;
    if (!twin) {
      old.insertBefore(child, place);
      continue;
    }
    dropUntil(twin);
    place = twin.nextSibling;
    morph(twin, child);
  }
  dropUntil(null);
}

/** Returns the key by which nodes of two views are matched. */
function kindOf(node) {
  if (node.nodeType === Node.TEXT_NODE) return "text";
  return [node.tagName, node.className, node.dataset.action, node.dataset.part].join(" ");
}
