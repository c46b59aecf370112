// The objects that go-ethereum gives to tracers in JavaScript.
"use strict";
(function (global) {
  const request = global.__request;
  delete global.__request;

  const wrapped = (value) => (value instanceof Big ? value.value : BigInt(value));

  // The part of big-integer.js that tracers use, on the engine's own integers.
  class Big {
    constructor(value) { this.value = value; }
    toString(radix) { return this.value.toString(radix === undefined ? 10 : radix); }
    toJSON() { return this.value.toString(); }
    valueOf() { return Number(this.value); }
    toJSNumber() { return Number(this.value); }
    isZero() { return this.value === 0n; }
    isNegative() { return this.value < 0n; }
    isPositive() { return this.value > 0n; }
    isOdd() { return (this.value & 1n) === 1n; }
    isEven() { return (this.value & 1n) === 0n; }
    compare(other) {
      const right = wrapped(other);
      return this.value < right ? -1 : this.value > right ? 1 : 0;
    }
    abs() { return new Big(this.value < 0n ? -this.value : this.value); }
    negate() { return new Big(-this.value); }
    not() { return new Big(~this.value); }
    square() { return new Big(this.value * this.value); }
    next() { return new Big(this.value + 1n); }
    prev() { return new Big(this.value - 1n); }
    divmod(other) {
      const right = wrapped(other);
      return { quotient: new Big(this.value / right), remainder: new Big(this.value % right) };
    }
    bitLength() {
      const size = this.value === 0n ? 0 : this.value.toString(2).replace("-", "").length;
      return new Big(BigInt(size));
    }
  }
  const binary = {
    add: (a, b) => a + b, subtract: (a, b) => a - b, multiply: (a, b) => a * b,
    divide: (a, b) => a / b, mod: (a, b) => a % b, pow: (a, b) => a ** b,
    shiftLeft: (a, b) => a << b, shiftRight: (a, b) => a >> b,
    and: (a, b) => a & b, or: (a, b) => a | b, xor: (a, b) => a ^ b,
  };
  for (const [name, apply] of Object.entries(binary)) {
    Big.prototype[name] = function (other) { return new Big(apply(this.value, wrapped(other))); };
  }
  const comparisons = {
    equals: (order) => order === 0, notEquals: (order) => order !== 0,
    lesser: (order) => order < 0, lesserOrEquals: (order) => order <= 0,
    greater: (order) => order > 0, greaterOrEquals: (order) => order >= 0,
  };
  for (const [name, holds] of Object.entries(comparisons)) {
    Big.prototype[name] = function (other) { return holds(this.compare(other)); };
  }
  const aliases = {
    plus: "add", minus: "subtract", times: "multiply", over: "divide", remainder: "mod",
    compareTo: "compare", eq: "equals", neq: "notEquals", lt: "lesser", leq: "lesserOrEquals",
    gt: "greater", geq: "greaterOrEquals",
  };
  for (const [alias, name] of Object.entries(aliases)) Big.prototype[alias] = Big.prototype[name];

  global.bigInt = function (value, radix) {
    if (value === undefined) return new Big(0n);
    if (value instanceof Big) return new Big(value.value);
    if (typeof value === "string" && radix !== undefined && Number(radix) !== 10) {
      let number = 0n;
      const base = BigInt(radix), negative = value.startsWith("-");
      for (const digit of negative ? value.slice(1) : value) {
        const part = parseInt(digit, Number(radix));
        if (Number.isNaN(part)) throw new Error("Invalid integer: " + value);
        number = number * base + BigInt(part);
      }
      return new Big(negative ? -number : number);
    }
    return new Big(BigInt(value));
  };

  const hexOf = (bytes) => {
    let text = "";
    for (const byte of bytes) text += (byte < 16 ? "0" : "") + byte.toString(16);
    return text;
  };
  const bytesOf = (hex) => {
    const found = new Uint8Array(hex.length >> 1);
    for (let at = 0; at < found.length; at++) found[at] = parseInt(hex.substr(2 * at, 2), 16);
    return found;
  };
  // Bytes of a text in hexadecimal, with or without 0x, or of an array of bytes.
  const read = (value) => {
    if (typeof value === "string") {
      let hex = /^0[xX]/.test(value) ? value.slice(2) : value;
      if (hex.length % 2) hex = "0" + hex;
      if (!/^[0-9a-fA-F]*$/.test(hex)) throw new TypeError("invalid hex string");
      return bytesOf(hex);
    }
    if (value instanceof Uint8Array) return value;
    if (value instanceof ArrayBuffer) return new Uint8Array(value);
    if (Array.isArray(value)) return Uint8Array.from(value);
    throw new TypeError("invalid buffer type");
  };
  // The last `size` bytes, with zeros before a shorter value.
  const fitted = (value, size) => {
    const bytes = read(value), found = new Uint8Array(size);
    const kept = bytes.subarray(Math.max(0, bytes.length - size));
    found.set(kept, size - kept.length);
    return found;
  };
  const ask = (...question) => {
    const answer = JSON.parse(request(JSON.stringify(question)));
    return answer;
  };

  global.toHex = (value) => "0x" + hexOf(read(value));
  global.toWord = (value) => fitted(value, 32);
  global.toAddress = (value) => fitted(value, 20);
  global.toContract = (from, nonce) =>
    bytesOf(ask("contract", hexOf(fitted(from, 20)), Number(nonce)));
  global.toContract2 = (from, salt, code) =>
    bytesOf(ask("contract2", hexOf(fitted(from, 20)), hexOf(fitted(salt, 32)), hexOf(read(code))));
  const precompiles = new Set();
  global.isPrecompiled = (value) => precompiles.has(hexOf(fitted(value, 20)));
  global.slice = (value, start, end) => {
    const bytes = read(value);
    if (!(start >= 0 && start <= end && end <= bytes.length)) {
      throw new RangeError(
        `Tracer accessed out of bound memory: available ${bytes.length}, offset ${start}, size ${end - start}`);
    }
    return bytes.slice(start, end);
  };

  const db = {
    getBalance: (address) => new Big(BigInt("0x" + ask("balance", hexOf(fitted(address, 20))))),
    getNonce: (address) => ask("nonce", hexOf(fitted(address, 20))),
    getCode: (address) => bytesOf(ask("code", hexOf(fitted(address, 20)))),
    getState: (address, slot) =>
      bytesOf(ask("state", hexOf(fitted(address, 20)), hexOf(fitted(slot, 32)))),
    exists: (address) => ask("exists", hexOf(fitted(address, 20))),
  };

  let frames = [], memory = "", step = null;
  const number = (hex) => new Big(BigInt("0x" + hex));
  const frame = () => frames[frames.length - 1];
  const log = {
    op: {
      toNumber: () => step[2], toString: () => step[3],
      isPush: () => step[2] >= 0x5f && step[2] <= 0x7f,
    },
    stack: {
      length: () => step[9].length,
      peek: (at) => {
        const words = step[9];
        if (!(at >= 0 && at < words.length)) {
          throw new RangeError(
            `tracer accessed out of bound stack: size ${words.length}, index ${at}`);
        }
        return number(words[words.length - 1 - at]);
      },
    },
    memory: {
      slice: (start, end) => {
        if (!(start >= 0 && start <= end)) {
          throw new RangeError(`tracer accessed out of bound memory: offset ${start}, end ${end}`);
        }
        if (end === start) return new Uint8Array(0);
        if (end - start > 1024 * 1024 + memory.length / 2) {
          throw new RangeError(
            `tracer reached limit for padding memory slice: end ${end}, memorySize ${memory.length / 2}`);
        }
        const found = new Uint8Array(end - start);
        found.set(bytesOf(memory.substring(2 * start, 2 * end)));
        return found;
      },
      getUint: (at) => {
        if (!(at >= 0 && 2 * (at + 32) <= memory.length)) {
          throw new RangeError(
            `tracer accessed out of bound memory: available ${memory.length / 2}, offset ${at}, size 32`);
        }
        return number(memory.substr(2 * at, 64));
      },
      length: () => memory.length / 2,
    },
    contract: {
      getCaller: () => bytesOf(frame().caller), getAddress: () => bytesOf(frame().address),
      getValue: () => number(frame().value), getInput: () => bytesOf(frame().input),
    },
    getPC: () => step[1], getGas: () => step[4], getCost: () => step[5], getDepth: () => step[6],
    getRefund: () => step[7],
    getError: () => (step[8] === null ? undefined : step[8]),
  };

  let tracer = null, current = "";
  const call = (name, ...given) => {
    current = name;
    return tracer[name](...given);
  };
  global.__where = () => current;

  global.__begin = (source, config, known) => {
    for (const address of JSON.parse(known)) precompiles.add(address);
    tracer = (0, eval)("(" + source + "\n)");
    if (tracer === null || typeof tracer !== "object") {
      throw new Error("trace object must be an object");
    }
    const has = (name) => typeof tracer[name] === "function";
    for (const name of ["result", "fault"]) {
      if (!has(name)) throw new Error(`trace object must expose a function ${name}()`);
    }
    if (has("enter") !== has("exit")) {
      throw new Error("trace object must expose either both or none of enter() and exit()");
    }
    if (has("setup")) call("setup", config);
    return JSON.stringify({ steps: has("step"), frames: has("enter") });
  };

  // Events: ["s", pc, op, name, gas, cost, depth, refund, error, stack, memory, kind],
  // ["e", frame, visible], ["x", gasUsed, output, error, visible].
  global.__batch = (text) => {
    for (const event of JSON.parse(text)) {
      if (event[0] === "s") {
        step = event;
        if (event[10] !== null) memory = event[10];
        const error = event[8];
        if (event[11] & 2) event[8] = null; // what the operation itself causes only `fault` gets
        if (event[11] & 1 && tracer.step) call("step", log, db);
        event[8] = error;
        if (event[11] & 2) call("fault", log, db);
      } else if (event[0] === "e") {
        const entered = event[1];
        frames.push(entered);
        if (event[2] && tracer.enter) {
          call("enter", {
            getType: () => entered.type, getFrom: () => bytesOf(entered.from),
            getTo: () => bytesOf(entered.to), getInput: () => bytesOf(entered.input),
            getGas: () => entered.gas,
            getValue: () => (entered.sent === null ? undefined : number(entered.sent)),
          });
        }
      } else {
        if (!event[5]) frames.pop();
        if (event[4] && tracer.exit) {
          call("exit", {
            getGasUsed: () => event[1], getOutput: () => bytesOf(event[2]),
            getError: () => (event[3] === null ? undefined : event[3]),
          });
        }
      }
    }
  };

  global.__result = (text) => {
    const given = JSON.parse(text), ctx = {};
    for (const [name, [kind, value]] of Object.entries(given)) {
      ctx[name] = kind === "bytes" ? bytesOf(value) : kind === "number" ? number(value) : value;
    }
    const found = JSON.stringify(call("result", ctx, db));
    return found === undefined ? "null" : found;
  };
})(globalThis);
