"""Sends generated requests to two nodes: ``python -m tests.faults.request_fuzzer --messages N``.

The requests come from the registry of methods, without development controls. First every member,
pair and triple of members of each object parameter is tried, mixed with random requests. One of the
nodes is replaced by a new node every `FRESH` messages. The other node has blocks, logs, filters and
pending slices. Each answer must be a JSON-RPC answer to its request, and no handler may crash.

``--seed`` repeats a run. If a request ends the process, the file ``--last`` contains the request.
"""

from __future__ import annotations

import argparse
import asyncio
import faulthandler
import itertools
import json
import logging
import mmap
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from fastevm.bench.node.content import EMITTER, deployment, signed
from fastevm.bench.node.launch import server_of
from fastevm.bench.programs.loops import word
from fastevm.node import Node, dev_node
from fastevm.node.dev_accounts import dev_accounts
from fastevm.rpc.dialect import DIALECTS
from fastevm.rpc.dispatch.dispatcher import Dispatcher
from fastevm.rpc.dispatch.long_answer import LongAnswer
from fastevm.rpc.dispatch.registry import Needs, RunOn, namespace_of
from fastevm.rpc.limits import Limits
from fastevm.rpc.methods import METHODS
from fastevm.rpc.transport.access import PUBLIC_NAMESPACES
from fastevm.rpc.transport.server import Server
from tests.faults.request_values import KNOWN, combinations_of, hostile, members_of, parameters

FRESH: Final = 2_000  # messages until a new node replaces one of the nodes
BESIDE: Final = 8  # requests in progress at a time
LAST_SIZE: Final = 1 << 16  # bytes of the file that contains the last requests
REPORT_EVERY: Final = 10_000  # messages between two lines of the report
SHOWN: Final = 600  # characters of a request in a report
BLOCKS: Final = 4
CRASHED: Final = "method handler crashed"
# Some generated values become this when encoded, which is not valid JSON.
UNREADABLE: Final = (b"\\ud800", b"Infinity")
# These methods wait until a transaction is mined, which looks like a hang.
LEFT_OUT: Final = frozenset({"eth_sendRawTransactionSync", "eth_sendTransactionSync"})
LIMITS: Final = Limits(
    call_time=0.1, request_time=30.0, sync_time=0.05, request_gas=50_000_000, call_gas=5_000_000
)

Request = tuple[str, list[Any]]


def methods() -> list[str]:
    """Returns the names of the methods to call."""
    return sorted(
        name
        for name, method in METHODS.items()
        if method.needs is Needs.NOTHING or namespace_of(name) in PUBLIC_NAMESPACES
        if method.run_on is not RunOn.SOCKET and name not in LEFT_OUT
    )


def systematic(rng: random.Random) -> Iterator[Request]:
    """Yields requests with every combination of up to three members of each object parameter.

    The order is random.
    """
    cases = [
        (name, position, names)
        for name in methods()
        for position, param in enumerate(METHODS[name].params)
        for names in combinations_of(members_of(param))
    ]
    rng.shuffle(cases)
    for name, position, names in cases:
        yield name, parameters(METHODS[name], rng, position, names)


def endless(rng: random.Random) -> Iterator[Request]:
    """Yields the requests of `systematic`, each followed by a random request, again and again."""
    names = methods()
    while True:
        for request in systematic(rng):
            yield request
            name = rng.choice(names)
            yield name, parameters(METHODS[name], rng)


class LastRequests:
    """Keeps the running requests in a memory-mapped file, which survives a crash of the process."""

    def __init__(self, path: Path) -> None:
        path.write_bytes(bytes(LAST_SIZE))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), LAST_SIZE)
        self._slots = itertools.cycle(range(BESIDE))
        self._size = LAST_SIZE // BESIDE

    def note(self, body: bytes) -> None:
        """Stores the beginning of a request that is about to run."""
        start = next(self._slots) * self._size
        text = body[: self._size - 1] + b"\n"
        self._map[start : start + len(text)] = text


class Fuzzed:
    """A server whose dispatchers get requests directly, without sockets."""

    def __init__(self, node: Node) -> None:
        self.server: Server = server_of(node, limits=LIMITS, threads=2)
        self.dispatchers: list[Dispatcher] = []

    async def start(self) -> None:
        """Starts the node."""
        await self.server.start()
        self.dispatchers = [self.server.dispatcher(dialect) for dialect in DIALECTS.values()]

    async def ask(self, body: bytes, dialect: int) -> bytes:
        """Returns the whole answer to a request."""
        answer = await self.dispatchers[dialect % len(self.dispatchers)].answer(body, client="fuzz")
        return answer.read() if isinstance(answer, LongAnswer) else answer

    async def result(self, method: str, *params: Any) -> Any:
        """Returns the result of a call. Fails if the call fails."""
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        return json.loads(await self.ask(body.encode(), 0))["result"]


async def use(fuzzed: Fuzzed) -> None:
    """Gives the node blocks, logs, filters and pooled transactions, so that requests find data."""
    first, second, *_ = dev_accounts(3)
    deploy = signed(first.private_key, 0, data=deployment(EMITTER, {1: 2}), gas_limit=1_000_000)
    KNOWN.raw.append("0x" + deploy.raw.hex())
    KNOWN.transactions.append(await fuzzed.result("eth_sendRawTransaction", KNOWN.raw[-1]))
    receipt = None
    while receipt is None:
        await asyncio.sleep(0.05)
        receipt = await fuzzed.result("eth_getTransactionReceipt", KNOWN.transactions[0])
    emitter = bytes.fromhex(receipt["contractAddress"][2:])
    for nonce in range(1, BLOCKS):
        call = signed(
            first.private_key, nonce, to=emitter, data=word(3) + word(7), gas_limit=100_000
        )
        KNOWN.raw.append("0x" + call.raw.hex())
        KNOWN.transactions.append(await fuzzed.result("eth_sendRawTransaction", KNOWN.raw[-1]))
    waiting = signed(second.private_key, 5, to=emitter, gas_limit=100_000)
    await fuzzed.result("eth_sendRawTransaction", "0x" + waiting.raw.hex())
    for kind in ("eth_newBlockFilter", "eth_newPendingTransactionFilter"):
        KNOWN.filters.append(await fuzzed.result(kind))
    KNOWN.filters.append(await fuzzed.result("eth_newFilter", {}))
    block = await fuzzed.result("eth_getBlockByNumber", "latest", False)
    KNOWN.blocks += [block["hash"], block["parentHash"]]


def fault_of(answer: bytes, call_id: int, body: bytes) -> str | None:
    """Returns what is wrong with an answer, or None if it is a valid answer to the request."""
    try:
        found = json.loads(answer)
    except ValueError as error:
        return f"no JSON: {error}"
    if any(text in body for text in UNREADABLE) and b"parse error" in answer:
        return None
    if not isinstance(found, dict) or found.get("id") != call_id:
        return "no answer to the request"
    if ("result" in found) == ("error" in found):
        return "neither a result nor an error, or both"
    if "error" in found and found["error"].get("message") == CRASHED:
        return CRASHED
    return None


class LoggedErrors(logging.Handler):
    """Counts errors in the log as faults, because not every failure reaches a client."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__(logging.ERROR)
        self.faults = faults

    def emit(self, record: logging.LogRecord) -> None:
        self.faults.append(f"logged: {record.getMessage()}"[:SHOWN])


class Fuzzer:
    """A run of the fuzzer. ``faults``: invalid answers and logged errors."""

    def __init__(self, seed: int, last: Path) -> None:
        self.rng = random.Random(seed)
        self.requests = endless(self.rng)
        self.last = LastRequests(last)
        self.asked: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()  # method -> number of requests with a result
        self.faults: list[str] = []

    async def run(self, messages: int, until: float) -> int:
        """Sends requests until a number or a time is reached. Returns how many were sent."""
        used = Fuzzed(dev_node(block_time_ms=1_000, slice_interval_ms=100))
        await used.start()
        await use(used)
        done = 0
        try:
            while done < messages and time.monotonic() < until:
                fresh = Fuzzed(dev_node())
                await fresh.start()
                try:
                    count = min(FRESH, messages - done)
                    await asyncio.gather(
                        *(self._send(fresh, used, count // BESIDE + 1) for _ in range(BESIDE))
                    )
                finally:
                    await fresh.server.stop()
                done = self.asked.total()
                if done // REPORT_EVERY != (done - count) // REPORT_EVERY:
                    print(f"{done} messages, {len(self.faults)} faults", flush=True)
        finally:
            await used.server.stop()
        return done

    async def _send(self, fresh: Fuzzed, used: Fuzzed, count: int) -> None:
        rng = self.rng
        for _ in range(count):
            name, params = next(self.requests)
            number = rng.randrange(2**31)
            message = {"jsonrpc": "2.0", "id": number, "method": name, "params": params}
            if not rng.randrange(500):
                message["params"] = hostile(rng)
            body = json.dumps(message).encode()
            self.last.note(body)
            self.asked[name] += 1
            answer = await rng.choice((fresh, used)).ask(body, rng.randrange(2))
            fault = fault_of(answer, number, body)
            if fault is not None:
                self.faults.append(f"{fault}: {body[:SHOWN]!r} -> {answer[:SHOWN]!r}")
            elif b'"result"' in answer[:80]:
                self.answered[name] += 1


def main() -> int:
    """Runs the fuzzer and prints a report. Returns 1 if there was a fault."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults.request_fuzzer", description=__doc__
    )
    parser.add_argument("--messages", type=int, default=10_000, help="(%(default)s)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="the longest run")
    parser.add_argument("--seed", type=int, default=0, help="(%(default)s)")
    parser.add_argument("--last", type=Path, default=Path("request_fuzzer.last"))
    parser.add_argument("--counts", action="store_true", help="requests and results by method")
    options = parser.parse_args()
    faulthandler.enable()
    logging.basicConfig(level=logging.ERROR)
    fuzzer = Fuzzer(options.seed, options.last)
    logging.getLogger().addHandler(LoggedErrors(fuzzer.faults))
    started = time.monotonic()
    done = asyncio.run(fuzzer.run(options.messages, started + options.seconds))
    if options.counts:
        for name in methods():
            print(f"{name:45} {fuzzer.asked[name]:8} {fuzzer.answered[name]:8}")
    for fault in fuzzer.faults[:20]:
        print(fault)
    results = fuzzer.answered.total()
    seconds = time.monotonic() - started
    print(f"{done} messages in {seconds:.0f} s: {results} results, {len(fuzzer.faults)} faults")
    options.last.unlink()
    return 1 if fuzzer.faults else 0


if __name__ == "__main__":
    sys.exit(main())
