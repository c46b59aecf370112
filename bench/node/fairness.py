"""Measures how greedy clients delay another client: `python -m fastevm.bench.node.fairness`.

Greedy clients at 127.0.0.1 keep one node busy. Two connections repeat an `eth_callMany` of 500
endless calls. The other connections repeat an endless `eth_call` of 50 million gas, or with
``--cheap`` `eth_blockNumber`. A client at 127.0.0.2 sends short requests at a steady rate. The node
measures how late its slices are.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import time
from collections.abc import Sequence
from threading import Thread
from typing import Any, Final

from fastevm.bench.cadence import spread
from fastevm.bench.node.hostile_load import ask
from fastevm.bench.node.launch import HOST, NodeProcess, fastevm_node
from fastevm.bench.node.load import http, size_of
from fastevm.bench.programs.loops import LOOP_CODE, LOOPED
from fastevm.bench.report.figures import aim
from fastevm.rpc_client.messages import request_body

OTHER_HOST: Final = "127.0.0.2"  # the address of the client that is measured
CONNECTIONS: Final = 1_000  # connections of the greedy clients
BUNDLES: Final = 2  # connections with eth_callMany
BUNDLED_CALLS: Final = 500
GAS: Final = hex(50_000_000)
ASK_EVERY: Final = 0.05  # seconds between two requests of a kind
SETTLE_SECONDS: Final = 3.0  # time until all connections are open and busy
PIECE: Final = 1 << 18  # bytes per read
RETRY_SECONDS: Final = 0.05  # after a connection or a request was refused
DIGITS: Final = 1  # decimals of milliseconds in the report

# Name of the aim, group and figure of the report, limit in milliseconds.
AIMS: Final = (
    ("eth_blockNumber of another client, p99", "eth_blockNumber", "p99", 20.0),
    ("eth_call of another client, p99", "eth_call", "p99", 100.0),
    ("eth_feeHistory of another client, p99", "eth_feeHistory", "p99", 200.0),
    ("lateness of slices, largest", "lateness", "max", 20.0),
)


def greedy_bodies(connections: int, is_cheap: bool = False) -> list[bytes]:
    """Returns a request for each connection to repeat."""
    code = {LOOPED: {"code": LOOP_CODE}}
    call = {"to": LOOPED, "gas": GAS}
    bundle = {"transactions": [call] * BUNDLED_CALLS}
    many = request_body("eth_callMany", [[bundle], {"blockNumber": "latest"}, code])
    item = request_body("eth_call", [call, "latest", code])
    if is_cheap:
        item = request_body("eth_blockNumber")
    return [many] * BUNDLES + [item] * max(connections - BUNDLES, 0)


async def repeat(port: int, body: bytes) -> None:
    """Sends a request again after each response, until the task is cancelled."""
    request = http(body)
    while True:
        try:
            reader, writer = await asyncio.open_connection(HOST, port, limit=PIECE)
        except OSError:
            await asyncio.sleep(RETRY_SECONDS)
            continue
        try:
            while True:
                writer.write(request)
                head = await reader.readuntil(b"\r\n\r\n")
                answer = await reader.readexactly(size_of(head) - len(head))
                if b'"code":-32005' in answer:
                    await asyncio.sleep(RETRY_SECONDS)
        except (OSError, asyncio.IncompleteReadError):
            await asyncio.sleep(RETRY_SECONDS)
        finally:
            writer.transport.abort()


def attack(port: int, bodies: Sequence[bytes]) -> None:
    """Keeps a connection busy with each body until the process ends."""

    async def all_of_them() -> None:
        await asyncio.gather(*(repeat(port, body) for body in bodies))

    asyncio.run(all_of_them())


def measure(node: NodeProcess, seconds: float, bodies: Sequence[bytes]) -> dict[str, Any]:
    """Returns milliseconds of requests and slices, and the number of missed slices."""
    context = multiprocessing.get_context("spawn")
    attacker = context.Process(target=attack, args=(node.port, bodies), daemon=True)
    if bodies:
        attacker.start()
        time.sleep(SETTLE_SECONDS)
    questions = {
        "eth_blockNumber": request_body("eth_blockNumber"),
        "eth_call": request_body("eth_call", [{"to": OTHER}, "latest"]),
        "eth_feeHistory": request_body("eth_feeHistory", ["0x5", "latest", [10, 50, 90]]),
        "eth_getLogs": request_body("eth_getLogs", [{"fromBlock": "0x0", "toBlock": "latest"}]),
        "eth_simulateV1": request_body("eth_simulateV1", [SIMULATED, "latest"]),
    }
    asked: dict[str, list[float]] = {method: [] for method in questions}
    before = node.metrics()
    until = time.perf_counter() + seconds
    threads = [
        Thread(
            target=ask,
            args=(node.port, body, until, asked[method]),
            kwargs={"address": OTHER_HOST, "every": ASK_EVERY},
        )
        for method, body in questions.items()
    ]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        after = node.metrics()
        memory = node.memory()
    finally:
        if bodies:
            attacker.kill()
            attacker.join()
    late = {name: after[f"slice_lateness_ms_{name}"] for name in ("p50", "p99", "max")}
    return {
        **{method: spread(times, DIGITS) for method, times in asked.items()},
        "questions": {method: len(times) for method, times in asked.items()},
        "lateness": late,
        "missed": after["slices_missed_total"] - before["slices_missed_total"],
        "memory_mib": memory >> 20,
    }


OTHER: Final = "0x" + "00" * 19 + "ee"
SIMULATED: Final = {"blockStateCalls": [{"calls": [{"to": OTHER}]}]}


def main() -> int:
    """Prints figures of an idle and a busy node as JSON. Returns 1 if an aim was missed."""
    parser = argparse.ArgumentParser(
        prog="python -m fastevm.bench.node.fairness", description=__doc__
    )
    parser.add_argument("--seconds", type=float, default=20.0, help="of load (%(default)s)")
    parser.add_argument("--connections", type=int, default=CONNECTIONS, help="(%(default)s)")
    parser.add_argument("--cheap", action="store_true", help="repeat eth_blockNumber")
    options = parser.parse_args()
    with fastevm_node() as node:
        quiet = measure(node, min(options.seconds, 5.0), ())
    with fastevm_node() as node:
        bodies = greedy_bodies(options.connections, options.cheap)
        busy = measure(node, options.seconds, bodies)
    rows = [aim(name, "ms", limit, busy[group][figure]) for name, group, figure, limit in AIMS]
    print(json.dumps({"quiet": quiet, "busy": busy, "aims": rows}, indent=1))
    return 0 if all(row["met"] for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
