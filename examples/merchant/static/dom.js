// Small helpers for building pages: text goes in as text, never as markup.

/** An element with properties (`dataset` and `aria-*` included) and children; null is left out. */
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

/** The element with an id; a page without it is broken. */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found;
}

/** 0x1234…cdef for people, with the whole text for whoever points at it or copies it. */
export function short(hex) {
  const text = hex.length > 14 ? `${hex.slice(0, 6)}…${hex.slice(-4)}` : hex;
  return element("code", { title: hex, textContent: text });
}

/** "in 14 min", "in 40 s" or "ended", for a time in seconds since 1970. */
export function until(time) {
  const left = Math.ceil(time - Date.now() / 1000);
  if (left <= 0) return "ended";
  return left >= 120 ? `in ${Math.floor(left / 60)} min` : `in ${left} s`;
}

/** A clock's time for people. */
export function clock(time) {
  return new Date(time * 1000).toLocaleTimeString([], { timeStyle: "medium" });
}

/** An element that counts down to a time. */
export function countdown(time) {
  return element("span", { dataset: { until: time }, textContent: until(time) });
}

/** Writes all countdowns anew every second. */
export function keepCounting() {
  setInterval(() => {
    for (const found of document.querySelectorAll("[data-until]")) {
      found.textContent = until(Number(found.dataset.until));
    }
  }, 1000);
}

// What the reader or a running action has changed, and no newer view takes back.
const KEPT = new Set(["open", "disabled", "aria-busy"]);

/**
 * Makes `old` look like `fresh` and keeps every element that both have: a button that is being
 * pressed stays the same button, what is open stays open, and the focus stays where it is. Handlers
 * stay the old ones, so they must not hold on to what changes.
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

/** What makes two nodes of two views the same one. */
function kindOf(node) {
  if (node.nodeType === Node.TEXT_NODE) return "text";
  return [node.tagName, node.className, node.dataset.action, node.dataset.part].join(" ");
}
