// Shared by the programs of all clients: URL and key from the arguments, a contract, and the output of results.

export const [url, privateKey] = process.argv.slice(2);
export const socketUrl = url.replace("http", "ws");
export const NOBODY = "0x00000000000000000000000000000000000000b0";
const LIMIT = 300_000; // milliseconds for one program

// Increments slot 0, logs the new value with topic 7, and returns it.
export const COUNTER = "5f54600101805f555f52600760205fa160205ff3";
const size = (COUNTER.length / 2).toString(16).padStart(2, "0");
export const INITCODE = `0x60${size}600a5f3960${size}5ff3${COUNTER}`;

const programs = [];

// Registers a program. `main` prints its value, or its error, as a line of JSON.
export function program(name, run) {
  programs.push([name, run]);
}

export function within(start) {
  return new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error("nothing came in time")), LIMIT).unref();
    start(resolve, reject);
  });
}

const asNumber = (_, value) => (typeof value === "bigint" ? Number(value) : value);

export async function main() {
  for (const [name, run] of programs) {
    let told;
    try {
      told = { name, value: await run() };
    } catch (error) {
      told = { name, error: String(error.message ?? error) };
    }
    console.log(JSON.stringify(told, asNumber));
  }
  process.exit(0); // sockets and polls of the clients would keep it alive
}
