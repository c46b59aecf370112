// JSON-RPC: calls by POST, in one batch if made in the same event-loop turn; subscriptions over a
// WebSocket.

const BATCH = 40; // calls of one POST
const FIRST_WAIT = 500; // milliseconds until the socket is opened again
const LONGEST_WAIT = 8000;

const elsewhere = document.querySelector('meta[name="json-rpc"]').content;
export const url = new URL(elsewhere || "./", location.href.split("#")[0]).href;

/** A JSON-RPC error: its code, its message, and data such as that of a revert. */
export class Refusal extends Error {
  constructor({ code, message, data }) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

let queue = [];
let lastId = 0;

/** The id of a request; the node does not log requests whose ids begin like this. */
const nextId = () => `explorer-${++lastId}`;

/** The result of a method. Calls of the same event-loop turn are sent in one batch. */
export function call(method, ...params) {
  return new Promise((resolve, reject) => {
    if (!queue.length) queueMicrotask(flush);
    queue.push({ method, params, resolve, reject });
  });
}

/** The result of a method that may take long, in a request of its own. */
export async function callAlone(method, ...params) {
  return resultOf(await post({ jsonrpc: "2.0", id: nextId(), method, params }));
}

/** The result, or null where the node refuses the call. */
export const tryCall = (method, ...params) =>
  call(method, ...params).catch((error) => {
    if (error instanceof Refusal) return null;
    throw error;
  });

function flush() {
  const waiting = queue;
  queue = [];
  for (let at = 0; at < waiting.length; at += BATCH) send(waiting.slice(at, at + BATCH));
}

async function send(batch) {
  const bodies = batch.map(({ method, params }) => ({ jsonrpc: "2.0", id: nextId(), method, params }));
  try {
    const response = await post(bodies.length === 1 ? bodies[0] : bodies);
    const answers = new Map([response].flat().map((answer) => [answer.id, answer]));
    batch.forEach(({ resolve, reject }, i) => {
      const answer = answers.get(bodies[i].id) ?? { error: [response].flat()[0]?.error };
      try {
        resolve(resultOf(answer));
      } catch (error) {
        reject(error);
      }
    });
  } catch (error) {
    for (const { reject } of batch) reject(error);
  }
}

function resultOf(answer) {
  if (answer.error) throw new Refusal(answer.error);
  if (answer.result === undefined) throw new Error("the node left a call without an answer");
  return answer.result;
}

async function post(body) {
  let response;
  try {
    response = await fetch(url, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
  } catch {
    throw new Error(elsewhere
      ? `no answer from ${url}: it does not run, or it does not allow pages of ${location.origin}`
      : "the node does not answer");
  }
  if (!response.ok) {
    const text = (await response.text()).trim().slice(0, 200);
    const hint = text === "origin not allowed" ? ` (start with --allow-origin ${location.origin})` : "";
    throw new Error(`${response.status} ${text}${hint}`);
  }
  return response.json();
}

/**
 * A WebSocket that is opened again when it closes. `topics`: name -> the function that gets each
 * result, or the error that ended its subscription; `options`: name -> the second parameter of its
 * subscription. `changed` gets the names that the node accepted and the reasons of those that it
 * refused, or null when the connection is lost. Returns a function that ends it.
 */
export function subscribe(topics, options, changed) {
  let wait = FIRST_WAIT;
  let ended = false;
  let socket = null;
  const open = () => {
    if (ended) return;
    socket = new WebSocket(url.replace(/^http/, "ws"));
    const names = Object.keys(topics);
    const byId = new Map();
    const accepted = [];
    const refused = {};
    let left = names.length;
    socket.onopen = () => {
      if (ended) return socket.close();
      wait = FIRST_WAIT;
      names.forEach((name, id) => {
        const params = name in options ? [name, options[name]] : [name];
        const body = { jsonrpc: "2.0", id, method: "eth_subscribe", params };
        socket.send(JSON.stringify(body));
      });
    };
    socket.onmessage = ({ data }) => {
      if (ended) return;
      const message = JSON.parse(data);
      if (message.method) {
        const name = byId.get(message.params.subscription);
        if (name) topics[name](message.params.result, message.params.error);
      } else if (names[message.id]) {
        if (message.result) {
          byId.set(message.result, names[message.id]);
          accepted.push(names[message.id]);
        } else refused[names[message.id]] = message.error?.message ?? "no answer";
        if (--left === 0) changed(accepted, refused);
      }
    };
    socket.onclose = () => {
      if (ended) return;
      changed(null);
      setTimeout(open, wait);
      wait = Math.min(2 * wait, LONGEST_WAIT);
    };
  };
  open();
  const end = () => {
    ended = true;
    removeEventListener("pagehide", end);
    // closing a socket that is still connecting logs an error in the console
    if (socket.readyState === WebSocket.OPEN) socket.close();
  };
  addEventListener("pagehide", end);
  return end;
}
