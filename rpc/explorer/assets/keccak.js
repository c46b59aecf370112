// Keccak-256 of bytes, as Ethereum hashes (FIPS 202 with the padding of the original submission).

const RATE = 136; // bytes
const HALVES = 50; // a lane is two halves of 32 bits, the lower one first
const CONSTANTS = constants();

/** The round constants as halves, from their linear-feedback shift register. */
function constants() {
  const made = [];
  let register = 1;
  for (let round = 0; round < 24; round++) {
    const halves = [0, 0];
    for (let j = 0; j < 7; j++) {
      const bit = (1 << j) - 1;
      if (register & 1) halves[bit >> 5] |= 1 << (bit & 31);
      register = (register << 1) ^ (register >> 7 ? 0x171 : 0);
    }
    made.push(halves);
  }
  return made;
}

/** Put a lane, rotated to the left, at an index of `to`. */
function rotated(to, index, low, high, by) {
  if (by & 32) [low, high] = [high, low];
  const left = by & 31;
  to[index] = left ? (low << left) | (high >>> (32 - left)) : low;
  to[index + 1] = left ? (high << left) | (low >>> (32 - left)) : high;
}

function permute(a) {
  const c = new Int32Array(10);
  const d = new Int32Array(2);
  const lane = new Int32Array(2);
  const row = new Int32Array(10);
  for (const [low, high] of CONSTANTS) {
    for (let x = 0; x < 10; x++) c[x] = a[x] ^ a[x + 10] ^ a[x + 20] ^ a[x + 30] ^ a[x + 40];
    for (let x = 0; x < 10; x += 2) {
      const next = (x + 2) % 10;
      const last = (x + 8) % 10;
      rotated(d, 0, c[next], c[next + 1], 1);
      for (let y = x; y < HALVES; y += 10) {
        a[y] ^= c[last] ^ d[0];
        a[y + 1] ^= c[last + 1] ^ d[1];
      }
    }
    let [x, y] = [1, 0];
    lane.set([a[2], a[3]]);
    for (let t = 0; t < 24; t++) {
      [x, y] = [y, (2 * x + 3 * y) % 5];
      const at = 2 * (x + 5 * y);
      const [keptLow, keptHigh] = [a[at], a[at + 1]];
      rotated(a, at, lane[0], lane[1], (((t + 1) * (t + 2)) / 2) % 64);
      lane[0] = keptLow;
      lane[1] = keptHigh;
    }
    for (let from = 0; from < HALVES; from += 10) {
      for (let i = 0; i < 10; i++) row[i] = a[from + i];
      for (let i = 0; i < 10; i++) a[from + i] = row[i] ^ (~row[(i + 2) % 10] & row[(i + 4) % 10]);
    }
    a[0] ^= low;
    a[1] ^= high;
  }
}

/** The hash of bytes, as 0x and 64 hex digits. */
export function keccak(bytes) {
  const padded = new Uint8Array((Math.floor(bytes.length / RATE) + 1) * RATE);
  padded.set(bytes);
  padded[bytes.length] ^= 0x01;
  padded[padded.length - 1] ^= 0x80;
  const words = new DataView(padded.buffer);
  const state = new Int32Array(HALVES);
  for (let at = 0; at < padded.length; at += RATE) {
    for (let i = 0; i < RATE / 4; i++) state[i] ^= words.getInt32(at + 4 * i, true);
    permute(state);
  }
  const out = new DataView(new ArrayBuffer(32));
  for (let i = 0; i < 8; i++) out.setInt32(4 * i, state[i], true);
  const digits = new Uint8Array(out.buffer);
  return `0x${[...digits].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

/** The hash of a text in UTF-8. */
export const keccakText = (text) => keccak(new TextEncoder().encode(text));
