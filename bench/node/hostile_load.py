"""Measures short calls and slices while other clients send the most expensive requests.

Connections are busy with loop traces of 60 s, simulated chains, searches of archived logs, and
dumps of a full pool. Meanwhile two clients send short requests at a steady rate, and the node
measures how late its slices are.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import time
from collections.abc import Sequence
from threading import Thread
from typing import Any, Final

from fastevm.bench.cadence import spread
from fastevm.bench.node.compared import ComparedNode, start_fastevm
from fastevm.bench.node.content import Content, prepare, receipt_of, shown, signed, submit
from fastevm.bench.node.launch import HOST
from fastevm.bench.node.load import Connection, http, size_of
from fastevm.bench.programs.loops import LOOP_CODE, LOOPED, word
from fastevm.bench.report.figures import aim
from fastevm.node.dev_accounts import dev_accounts
from fastevm.rpc_client.blocking import JsonRpcClient
from fastevm.rpc_client.messages import request_body

CONNECTIONS: Final = 16
DIGITS: Final = 2  # decimals of milliseconds in the report
ASK_EVERY: Final = 0.01  # seconds between two requests of a client
FIRST_ANSWERS_SECONDS: Final = 60.0  # limit until each request of the load has one response
LOG_CALLS: Final = 40  # transactions with LOGS logs each
LOGS: Final = 500
QUEUED: Final = 600  # transactions behind a nonce gap
QUEUED_DATA: Final = 16_384  # bytes per transaction
INDEX_MEGABYTES: Final = 1  # so small that most logs are read from blocks again
SIMULATED_GAS: Final = hex(5_000_000)
PIECE: Final = 1 << 20  # bytes per read
MEGABYTE: Final = 1 << 20

# Name of the aim, group and figure of the report, limit in milliseconds.
AIMS: Final = (
    ("eth_blockNumber, p99", "eth_blockNumber", "p99", 10.0),
    ("eth_call, p99", "eth_call", "p99", 50.0),
    ("lateness of slices, p99", "lateness", "p99", 10.0),
)


def fill(client: JsonRpcClient, content: Content) -> None:
    """Mines many logs and fills the pool."""
    first, *others = dev_accounts(10)
    nonce = int(client.call("eth_getTransactionCount", shown(first.address), "latest"), 16)
    to = bytes.fromhex(content.emitter[2:])
    data = word(LOGS) + word(7)
    calls = [
        signed(first.private_key, nonce + i, to=to, data=data, gas_limit=1_000_000)
        for i in range(LOG_CALLS)
    ]
    submit(client, calls)
    receipt_of(client, shown(calls[-1].hash))
    for start in range(0, QUEUED, 60):
        waiting = [
            signed(
                others[i % 9].private_key, 2 + i // 9, to=bytes(20), data=bytes([1]) * QUEUED_DATA,
                gas_limit=1_000_000,
            )
            for i in range(start, start + 60)
        ]  # fmt: skip
        submit(client, waiting)


def hostile_bodies(content: Content) -> dict[str, bytes]:
    """Returns the request of each method. Each connection repeats one request."""
    code = {LOOPED: {"code": LOOP_CODE}}
    call = {"to": LOOPED, "gas": "0x2faf080"}
    trace = [call, "latest", {"stateOverrides": code, "timeout": "60s"}]
    short = {"to": LOOPED, "gas": SIMULATED_GAS}
    simulated = {"blockStateCalls": [{"stateOverrides": code, "calls": [short] * 20}] * 4}
    search = {"fromBlock": "0x0", "toBlock": "latest", "address": content.emitter}
    asked: dict[str, list[Any]] = {
        "debug_traceCall": trace,
        "eth_simulateV1": [simulated, "latest"],
        "eth_getLogs": [search],
        "txpool_content": [],
    }
    return {method: request_body(method, params) for method, params in asked.items()}


def attack(port: int, bodies: Sequence[bytes], connections: int) -> None:
    """Keeps this many connections busy until the process ends."""

    async def one(body: bytes) -> None:
        while True:
            reader, writer = await asyncio.open_connection(HOST, port, limit=PIECE)
            try:
                while True:
                    writer.write(http(body))
                    head = await reader.readuntil(b"\r\n\r\n")
                    left = size_of(head) - len(head)
                    while left:
                        left -= len(await reader.read(min(left, PIECE))) or left
            except (OSError, asyncio.IncompleteReadError):
                await asyncio.sleep(ASK_EVERY)
            finally:
                writer.transport.abort()

    async def all_of_them() -> None:
        await asyncio.gather(*(one(bodies[i % len(bodies)]) for i in range(connections)))

    asyncio.run(all_of_them())


def ask(
    port: int,
    body: bytes,
    until: float,
    latencies: list[float],
    *,
    address: str | None = None,
    every: float = ASK_EVERY,
) -> None:
    """Sends a request at a steady rate. Latency counts from the time the request was due.

    ``address``: the client's loopback address. ``every``: seconds.
    """
    connection, request = Connection(port, address), http(body)
    due = time.perf_counter()
    while (now := time.perf_counter()) < until:
        if now < due:
            time.sleep(due - now)
        connection.send(request)
        while connection.receive() is None:
            pass
        latencies.append(time.perf_counter() - due)
        due += every
    connection.socket.close()


class HostileLoad:
    """Runs a node under the load. ``close`` stops the node."""

    def __init__(self, *options: str) -> None:
        size = ("--log-index-size", str(INDEX_MEGABYTES))
        self.node: ComparedNode = start_fastevm(*size, "--slice-interval", "200", *options)
        with self.node.client() as client:
            self.content = prepare(client)
            fill(client, self.content)
        self.node.settle()

    def close(self) -> None:
        """Ends the node."""
        self.node.stop()

    def run(self, seconds: float, connections: int = CONNECTIONS) -> dict[str, Any]:
        """Returns figures in milliseconds and MiB. Without connections the node is idle."""
        context = multiprocessing.get_context("spawn")
        port, bodies = self.node.port, hostile_bodies(self.content)
        content = (port, [*bodies.values()], connections)
        attacker = context.Process(target=attack, args=content, daemon=True)
        if connections:
            attacker.start()
            self._await_answers(list(bodies)[:connections])
        before = self.node.metrics()
        try:
            asked, memory = self._ask(seconds)
        finally:
            if connections:
                attacker.kill()
                attacker.join()
        after = self.node.metrics()
        late = {name: after[f"slice_lateness_ms_{name}"] for name in ("p50", "p99", "max")}
        return {
            **{method: spread(times, DIGITS) for method, times in asked.items()},
            "lateness": late,
            "missed": after["slices_missed_total"] - before["slices_missed_total"],
            "memory_mib": round(memory / MEGABYTE, 1),
        }

    def _await_answers(self, methods: Sequence[str]) -> None:
        """Waits until each method has returned a response. Raises TimeoutError."""
        until = time.monotonic() + FIRST_ANSWERS_SECONDS
        time.sleep(2.0)
        while missing := [method for method in methods if not self._is_answered(method)]:
            if time.monotonic() > until:
                raise TimeoutError(f"no answer in {FIRST_ANSWERS_SECONDS} s: {', '.join(missing)}")
            time.sleep(ASK_EVERY)

    def _is_answered(self, method: str) -> bool:
        return any(method in name for name in self.node.metrics())

    def _ask(self, seconds: float) -> tuple[dict[str, list[float]], int]:
        """Returns the latencies of the short requests, and the peak memory."""
        call = {"to": self.content.answer}
        bodies = {
            "eth_blockNumber": request_body("eth_blockNumber"),
            "eth_call": request_body("eth_call", [call, "latest"]),
        }
        asked: dict[str, list[float]] = {method: [] for method in bodies}
        until = time.perf_counter() + seconds
        threads = [
            Thread(target=ask, args=(self.node.port, body, until, asked[method]))
            for method, body in bodies.items()
        ]
        for thread in threads:
            thread.start()
        memory = 0
        while time.perf_counter() < until:
            memory = max(memory, self.node.memory())
            time.sleep(0.1)
        for thread in threads:
            thread.join()
        return asked, memory


def aims(found: dict[str, Any]) -> list[dict[str, object]]:
    """Returns the aims with the measured values."""
    return [aim(name, "ms", limit, found[group][figure]) for name, group, figure, limit in AIMS]


def measure(seconds: float, connections: int) -> int:
    """Prints figures of an idle and a loaded node. Returns 1 if an aim was missed."""
    load = HostileLoad()
    try:
        found = {"quiet": load.run(seconds, 0), "loaded": load.run(seconds, connections)}
    finally:
        load.close()
    print(json.dumps(found, indent=1))
    return 0 if all(row["met"] for row in aims(found["loaded"])) else 1
