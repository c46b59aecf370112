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

/** Puts `fresh` in the place of `old` and keeps what the reader opened and where the focus was. */
export function replaceKeeping(old, fresh) {
  for (const open of old.querySelectorAll("details[open][data-part]")) {
    const twin = fresh.querySelector(`details[data-part="${open.dataset.part}"]`);
    if (twin) twin.open = true;
  }
  const focused = old.contains(document.activeElement) ? document.activeElement : null;
  old.replaceWith(fresh);
  if (!focused) return;
  const key = focused.dataset.action;
  const twin = key ? fresh.querySelector(`[data-action="${key}"]`) : null;
  (twin ?? fresh).focus({ preventScroll: true });
}
