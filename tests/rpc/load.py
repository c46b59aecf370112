"""Clients in a process of their own: heavy simulations, or small requests whose times they print.

python -m tests.rpc.load heavy URL SECONDS CONNECTIONS
python -m tests.rpc.load probe URL SECONDS METHOD
"""

import itertools
import json
import sys
import threading
import time
from typing import Any

from fastevm.wire.client.blocking import JsonRpcClient
from fastevm.wire.client.messages import request_body

A, B, C = ("0x" + byte * 20 for byte in ("a1", "b0", "c0"))
TIMEOUT = 60.0


def one_block(code: str, calls: int) -> dict[str, Any]:
    """Calls of one contract in one block."""
    call = {"from": A, "to": C}
    return {"blockStateCalls": [{"stateOverrides": {C: {"code": code}}, "calls": [call] * calls}]}


HEAVY: list[dict[str, Any]] = [
    one_block("0x5b5f56", 1),  # a loop until the gas is gone
    {"blockStateCalls": [{"calls": [{"from": A, "to": B}] * 4}] * 256},
    one_block("0x00", 1_000),
    one_block("0x5b611000" + "5f2050" + "5f56", 1),  # hashes until the gas is gone
    one_block("0x61c3505ff3", 20),  # outputs of 50,000 bytes
]
PROBES: dict[str, list[Any]] = {
    "eth_blockNumber": [],
    "eth_call": [{"from": A, "to": B}, "latest"],
}


def keep_busy(url: str, until: float, first: int) -> None:
    """Send one heavy request after the other."""
    client = JsonRpcClient(url, timeout=TIMEOUT)
    for payload in itertools.islice(itertools.cycle(HEAVY), first % len(HEAVY), None):
        if time.monotonic() > until:
            return
        client.send(request_body("eth_simulateV1", [payload, "latest"]))


def heavy(url: str, seconds: float, connections: int) -> None:
    """Keep so many connections busy."""
    until = time.monotonic() + seconds
    threads = [
        threading.Thread(target=keep_busy, args=(url, until, number), daemon=True)
        for number in range(connections)
    ]
    for thread in threads:
        thread.start()
    time.sleep(max(until - time.monotonic(), 0))


def probe(url: str, seconds: float, method: str) -> None:
    """Send small requests and print their times in milliseconds as JSON."""
    client, times = JsonRpcClient(url, timeout=TIMEOUT), []
    content = request_body(method, PROBES[method])
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        started = time.perf_counter()
        answer = json.loads(client.send(content))
        times.append((time.perf_counter() - started) * 1000)
        if "result" not in answer:
            raise SystemExit(f"{method}: {answer}")
        time.sleep(0.005)
    print(json.dumps(times))


def main(arguments: list[str]) -> None:
    kind, url, seconds, last = arguments
    if kind == "heavy":
        heavy(url, float(seconds), int(last))
    else:
        probe(url, float(seconds), last)


if __name__ == "__main__":
    main(sys.argv[1:])
