"""Tests that small requests are answered before any of sixteen heavy requests ends.

These tests compare the order of answers, and the CPU time that the event loop spends in one
iteration. Both do not depend on how busy the machine is. ``python -m fastevm.bench.cadence``
measures how long the answers take.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from fastevm.bench.node.launch import ServerThread
from fastevm.rpc_client.messages import request_body
from tests.shared_data import ROOT

from .simulating import ENDLESS, A, B, C, post, sent, wait_for_rest, wait_until

CONNECTIONS = 16
SMALL_REQUESTS = 50
SECONDS = 4.0
TICK = 0.002  # seconds between two measurements of the loop
# Limit of the loop's CPU milliseconds between two measurements, for 99 % of them.
TURN_MS = 5.0


class Heartbeat:
    """Measures in a timer how much CPU time the event loop's thread uses between two calls."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.turns: list[float] = []
        self.running = True
        self.spent = 0.0

    def beat(self) -> None:
        """Records the CPU milliseconds since the last call, and schedules the next call."""
        spent = time.thread_time()
        self.turns.append((spent - self.spent) * 1000)
        self.spent = spent
        if self.running:
            self.loop.call_later(TICK, self.beat)

    def measure(self, seconds: float) -> list[float]:
        """Measures for ``seconds``. Returns the CPU milliseconds in ascending order."""
        self.loop.call_soon_threadsafe(self.beat)
        time.sleep(seconds)
        self.running = False
        return sorted(self.turns[1:])


@contextmanager
def heavy_load(url: str) -> Iterator[None]:
    """Keeps sixteen connections busy with heavy simulations."""
    command = [sys.executable, "-m", "tests.rpc.load", url, str(SECONDS * 4), str(CONNECTIONS)]
    load = subprocess.Popen(command, cwd=ROOT)
    try:
        yield
    finally:
        load.kill()
        load.wait()


@pytest.mark.parametrize(
    ("method", "params"),
    [("eth_blockNumber", []), ("eth_call", [{"from": A, "to": B}, "latest"])],
)
def test_small_requests_are_answered_while_heavy_ones_run(
    unhurried: ServerThread, method: str, params: list[Any]
) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    small = json.dumps(call).encode()
    with ExitStack() as heavy:
        for _ in range(CONNECTIONS):
            heavy.enter_context(sent(unhurried, "eth_simulateV1", [ENDLESS, "latest"]))
        wait_until(unhurried, CONNECTIONS)
        for _ in range(SMALL_REQUESTS):
            assert "result" in post(unhurried.url("geth"), small)
        assert unhurried.server.workers.in_flight == CONNECTIONS
    wait_until(unhurried, 0)
    wait_for_rest(unhurried)


LOOPED = {"to": C, "gas": hex(2**40)}
LONG_TRACE = {"stateOverrides": {C: {"code": "0x5b5f56"}}, "tracer": "callTracer", "timeout": "60s"}
LONG_REQUESTS = (
    ("debug_traceCall", [LOOPED, "latest", LONG_TRACE]),
    ("eth_simulateV1", [ENDLESS, "latest"]),
    ("txpool_content", []),
    ("eth_getFilterLogs", ["0x1"]),
    ("eth_getFilterChanges", ["0x1"]),
    ("debug_traceBlockByNumber", ["0x2", {}]),
    ("eth_createAccessList", [LOOPED]),
    ("eth_feeHistory", ["0x400", "latest", [1, 50, 99]]),
)
SHORT_REQUESTS = (
    ("eth_blockNumber", []),
    ("eth_call", [{"from": A, "to": B}, "latest"]),
    ("eth_gasPrice", []),
    ("eth_getLogs", [{"fromBlock": "latest", "toBlock": "latest"}]),
    ("eth_getProof", [A, ["0x0"], "latest"]),
    ("txpool_status", []),
    ("txpool_contentFrom", [A]),
)


def test_short_calls_go_before_everything_that_is_long(unhurried: ServerThread) -> None:
    """Two long requests run until their clients disconnect. The others wait meanwhile."""
    long = LONG_REQUESTS[:2] * 4 + LONG_REQUESTS[2:]
    # the first request for logs builds the index of the newest block
    for method, params in SHORT_REQUESTS:
        post(unhurried.url("geth"), request_body(method, params))
    with ExitStack() as heavy:
        for method, params in long:
            heavy.enter_context(sent(unhurried, method, params))
        wait_until(unhurried, len(long))
        for _ in range(SMALL_REQUESTS // 10):
            for method, params in SHORT_REQUESTS:
                assert "result" in post(unhurried.url("geth"), request_body(method, params)), method
        assert unhurried.server.workers.in_flight == len(long)
    wait_until(unhurried, 0)
    wait_for_rest(unhurried)


def test_no_turn_of_the_loop_is_long_while_heavy_requests_run(live: ServerThread) -> None:
    with heavy_load(live.url("geth")):
        while not live.server.workers.in_flight:
            time.sleep(0.01)
        turns = Heartbeat(live.loop).measure(SECONDS)
    late = turns[len(turns) * 99 // 100]
    print(f"{len(turns)} turns, CPU p99 {late:.2f} ms, at most {turns[-1]:.2f} ms")
    assert late < TURN_MS
