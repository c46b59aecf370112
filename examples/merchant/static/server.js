// The client of the merchant's back end: JSON requests and the event stream.

/** Returns the JSON answer to a request; throws an Error with the server's text on failure. */
export async function ask(method, path, body) {
  let answer;
  try {
    answer = await fetch(path, {
      method,
      headers: body === undefined ? {} : { "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new Error("The shop does not answer. Is it still running?");
  }
  const content = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(content.error ?? `The shop answered with status ${answer.status}.`);
  return content;
}

export const get = (path) => ask("GET", path);
export const post = (path, body = {}) => ask("POST", path, body);

const STALE = 1500; // milliseconds without a slice until the page shows a warning

/** Shows block, slice and age of the newest slice in an element. */
export class Pulse {
  constructor(place) {
    this.place = place;
    this.text = place.querySelector("[data-part=text]");
    this.age = place.querySelector("[data-part=age]");
    this.seen = null;
    setInterval(() => this.show(), 100);
  }

  slice({ block, slice }) {
    this.seen = performance.now();
    this.text.textContent = slice === null ? `Block ${block}` : `Block ${block}, slice ${slice}`;
    this.show();
  }

  show() {
    if (this.seen === null) return;
    const age = performance.now() - this.seen;
    this.place.dataset.state = age > STALE ? "stale" : "live";
    this.age.textContent =
      age > STALE ? `no slice for ${Math.round(age / 1000)} s` : `${Math.round(age / 10) * 10} ms ago`;
  }
}

/**
 * Follows an event stream, with handlers by event name. The browser reconnects by itself, and the
 * stream starts with a complete snapshot. A hidden page closes its connection, because browsers
 * open only six per server.
 */
export function follow(path, handlers) {
  let source = null;
  const open = () => {
    source = new EventSource(path);
    for (const [name, handle] of Object.entries(handlers)) {
      source.addEventListener(name, (event) => handle(JSON.parse(event.data)));
    }
  };
  const look = () => {
    source?.close();
    source = null;
    if (!document.hidden) open();
  };
  document.addEventListener("visibilitychange", look);
  look();
  return {
    close() {
      document.removeEventListener("visibilitychange", look);
      source?.close();
    },
  };
}
