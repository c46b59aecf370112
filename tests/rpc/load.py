"""Runs clients in a separate process that keep heavy simulations running on a server.

Usage: ``python -m tests.rpc.load URL SECONDS CONNECTIONS``.
"""

import itertools
import sys
import threading
import time
from typing import Any

from fastevm.rpc_client.blocking import JsonRpcClient
from fastevm.rpc_client.messages import request_body

A, B, C = ("0x" + byte * 20 for byte in ("a1", "b0", "c0"))
TIMEOUT = 60.0


def one_block(code: str, calls: int) -> dict[str, Any]:
    """Returns a payload of eth_simulateV1: ``calls`` calls to one contract with ``code``."""
    call = {"from": A, "to": C}
    return {"blockStateCalls": [{"stateOverrides": {C: {"code": code}}, "calls": [call] * calls}]}


HEAVY: list[dict[str, Any]] = [
    one_block("0x5b5f56", 1),  # loops until it is out of gas
    {"blockStateCalls": [{"calls": [{"from": A, "to": B}] * 4}] * 256},
    one_block("0x00", 1_000),
    one_block("0x5b611000" + "5f2050" + "5f56", 1),  # computes hashes until it is out of gas
    one_block("0x61c3505ff3", 20),  # 20 calls that each return 50,000 bytes
]


def keep_busy(url: str, until: float, first: int) -> None:
    """Sends the heavy requests over one connection, one after another, until a time."""
    client = JsonRpcClient(url, timeout=TIMEOUT)
    for payload in itertools.islice(itertools.cycle(HEAVY), first % len(HEAVY), None):
        if time.monotonic() > until:
            return
        client.send(request_body("eth_simulateV1", [payload, "latest"]))


def heavy(url: str, seconds: float, connections: int) -> None:
    """Keeps ``connections`` connections busy for ``seconds``."""
    until = time.monotonic() + seconds
    threads = [
        threading.Thread(target=keep_busy, args=(url, until, number), daemon=True)
        for number in range(connections)
    ]
    for thread in threads:
        thread.start()
    time.sleep(max(until - time.monotonic(), 0))


if __name__ == "__main__":
    heavy(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
