// Creates elements. Values that come from a chain are set as text, never as markup.

/** An element as `tag.class`, with properties or attributes, and children; null is left out. */
export function el(name, properties = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  const made = document.createElement(tag);
  made.classList.add(...classes);
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "text") made.textContent = value;
    else if (key === "value") made.value = value;
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

/** An SVG element with attributes. */
export function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** Set the text of an element. Does nothing if it has this text already, to avoid a redraw. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * Give `parent` a child for each of `items`, in order. A child whose `key` remains is kept, with its
 * focus. `make` creates a child; `update` is then called for every child.
 */
export function keyed(parent, items, key, make, update = () => {}) {
  const known = (parent.known ??= new Map());
  const wanted = new Set(items.map(key));
  for (const [name, child] of known) {
    if (!wanted.has(name)) {
      child.remove();
      known.delete(name);
    }
  }
  let next = parent.firstElementChild;
  for (const item of items) {
    const name = key(item);
    let child = known.get(name);
    if (!child) known.set(name, (child = make(item)));
    update(child, item);
    if (child === next) next = next.nextElementSibling;
    else parent.insertBefore(child, next);
  }
}

/** A card: a section with a heading of the second level. */
export function card(title, ...children) {
  return el("section.card", { "aria-label": title }, el("h2", { text: title }), ...children);
}

/** A list of names with their values; a value of null is left out. */
export function facts(entries) {
  const list = el("dl.facts");
  for (const [name, value] of entries) {
    if (value === null || value === undefined) continue;
    const shown = Array.isArray(value) ? value : [value];
    list.append(el("div", {}, el("dt", { text: name }), el("dd", {}, ...shown)));
  }
  return list;
}

/** A table with titles, which scrolls by itself where it is too wide. */
export function table(label, titles, rows) {
  const head = titles.map((title) => el("th", { scope: "col", text: title }));
  const cell = (value) => (value?.tagName === "TD" ? value : el("td", {}, value ?? ""));
  return el("div.scroll", { role: "group", "aria-label": label, tabindex: "0" },
    el("table", {}, el("thead", {}, el("tr", {}, head)),
      el("tbody", {}, rows.map((row) => el("tr", {}, row.map(cell))))));
}

/** A button that copies a text. */
export function copier(text, what) {
  const icon = svg("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" },
    svg("path", { d: "M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z" }));
  const button = el("button.copy", {
    type: "button", "aria-label": `Copy ${what}`, title: `Copy ${what}`,
    onclick: async () => {
      try {
        await navigator.clipboard.writeText(text);
        button.replaceChildren("✓");
      } catch {
        button.replaceChildren("✕"); // the browser forbids it
      }
      setTimeout(() => button.replaceChildren(icon), 1200);
    },
  }, icon);
  return button;
}

/** Let a screen reader say a text. */
export function speak(text) {
  document.getElementById("spoken").textContent = text;
}
