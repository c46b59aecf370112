"""Measures whether slices stay on time under load: `python -m fastevm.bench.cadence`.

A development node in a separate process receives expensive eth_simulateV1 requests over several
connections, and a steady stream of transactions. The report has the lateness of slices as the node
measured it, the number of missed slices, the time from sending a transaction to seeing it in a
slice of the feed, and the latency of trivial requests.
"""

import argparse
import asyncio
import json
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from fastevm.bench.node.launch import fastevm_node, numbers_of
from fastevm.bench.report.figures import aim
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.node.dev_accounts import dev_accounts
from fastevm.rpc_client.asynchronous import AsyncJsonRpcClient
from fastevm.rpc_client.messages import RpcRefusal

CHAIN_ID = 31_337
SIMULATION_SECONDS = 60.0  # seconds, timeout of a request
DRAIN_SECONDS = 3.0
SENDERS = 10
SPINNER = "0x" + "00" * 19 + "cc"
# Decrements the calldata word to zero, hashing 64 bytes of memory in each round.
SPIN = "0x5f355b60405f205f526001900380600257" + "00"
ROUNDS = 20_000
TRIVIAL_EVERY = 0.01  # seconds between two trivial requests

# Name of the aim, group and figure of the report, and limit in milliseconds (for `missed`, the
# number of slices).
AIMS = (
    ("slices missed", "missed", None, 0.0),
    ("lateness of slices, p99", "lateness_ms", "p99", 10.0),
    ("lateness of slices, largest", "lateness_ms", "max", 50.0),
    ("a transaction visible, p99", "visible_ms", "p99", 250.0),
    ("trivial requests under load, p99", "trivial_ms", "p99", 20.0),
)


@dataclass(slots=True)
class Watch:
    """Records what the node's clients observe. All times are seconds of the same clock."""

    sent: dict[str, float] = field(default_factory=dict)
    visible: list[float] = field(default_factory=list)
    answered: list[float] = field(default_factory=list)
    arrivals: list[float] = field(default_factory=list)
    trivial: list[float] = field(default_factory=list)
    simulations: int = 0
    failures: int = 0


def percentile(values: list[float], share: float) -> float:
    """Returns the value that ``share`` of the values do not exceed; 0 without values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def simulation(rounds: int) -> dict[str, Any]:
    """Returns a payload of two blocks with two heavy calls each."""
    call = {"to": SPINNER, "input": "0x" + rounds.to_bytes(32, "big").hex()}
    block = {"calls": [call, call]}
    first = block | {"stateOverrides": {SPINNER: {"code": SPIN}}}
    return {"blockStateCalls": [first, block]}


async def simulate(url: str, watch: Watch, until: float, rounds: int) -> None:
    """Sends simulations over one connection, sequentially."""
    payload = simulation(rounds)
    async with AsyncJsonRpcClient(url, timeout=SIMULATION_SECONDS) as client:
        while time.monotonic() < until:
            try:
                blocks = await client.call("eth_simulateV1", payload, "pending")
            except RpcRefusal:
                blocks = []
            calls = [call for block in blocks for call in block["calls"]]
            good = bool(calls) and all(call["status"] == "0x1" for call in calls)
            watch.simulations += good
            watch.failures += not good


async def send(url: str, watch: Watch, until: float, rate: float) -> None:
    """Sends ``rate`` transactions per second.

    A late transaction does not delay the following ones.
    """
    accounts = dev_accounts(SENDERS)
    number, started = 0, time.monotonic()
    pending: set[asyncio.Task[None]] = set()
    async with AsyncJsonRpcClient(url) as client:
        while (now := time.monotonic()) < until:
            while started + number / rate <= now:
                key = accounts[number % SENDERS].private_key
                raw = payment(key, number // SENDERS)
                task = asyncio.create_task(submit(client, raw, watch))
                pending.add(task)
                task.add_done_callback(pending.discard)
                number += 1
            await asyncio.sleep(max(0.0, started + number / rate - time.monotonic()))
        await asyncio.gather(*pending)


def payment(key: bytes, nonce: int) -> Transaction:
    """Returns a signed transfer of one wei."""
    return Transaction.build(
        to=b"\xb0" * 20,
        value=1,
        gas_limit=21_000,
        chain_id=CHAIN_ID,
        nonce=nonce,
        max_fee_per_gas=10**11,
        max_priority_fee_per_gas=10**9,
    ).sign(key)


async def submit(client: AsyncJsonRpcClient, transaction: Transaction, watch: Watch) -> None:
    """Submits a transaction. Its time is measured from the moment before the request."""
    raw = "0x" + transaction.raw.hex()
    watch.sent[raw] = started = time.monotonic()
    try:
        await client.call("eth_sendRawTransaction", raw)
    except RpcRefusal:
        watch.failures += 1
    watch.answered.append(time.monotonic() - started)


async def ask(url: str, watch: Watch, until: float) -> None:
    """Requests the block number repeatedly over one connection."""
    async with AsyncJsonRpcClient(url) as client:
        while (started := time.monotonic()) < until:
            try:
                await client.call("eth_blockNumber")
            except RpcRefusal:
                watch.failures += 1
            watch.trivial.append(time.monotonic() - started)
            await asyncio.sleep(TRIVIAL_EVERY)


async def look(url: str, watch: Watch) -> None:
    """Reads the slice feed and records when each slice and each transaction appeared."""
    async with aiohttp.ClientSession() as session, session.ws_connect(url + "/feed") as socket:
        async for message in socket:
            now = time.monotonic()
            found = json.loads(message.data)
            if found["index"]:
                watch.arrivals.append(now)
            for raw in found["diff"]["transactions"]:
                sent = watch.sent.pop(raw, None)
                if sent is not None:
                    watch.visible.append(now - sent)


async def measure(url: str, options: argparse.Namespace) -> dict[str, Any]:
    """Puts the load on a node and returns the report."""
    watch, before = Watch(), await metrics(url)
    looking = asyncio.create_task(look(url, watch))
    await asyncio.sleep(1.0)
    until = time.monotonic() + options.seconds
    load = [simulate(url, watch, until, options.rounds) for _ in range(options.connections)]
    load += [send(url, watch, until, options.rate), ask(url, watch, until)]
    await asyncio.gather(*load)
    await asyncio.sleep(DRAIN_SECONDS)
    looking.cancel()
    return report(watch, before, await metrics(url))


async def metrics(url: str) -> dict[str, float]:
    """Returns the node's own metrics by name."""
    async with aiohttp.ClientSession() as session, session.get(url + "/metrics") as response:
        return numbers_of(await response.text())


def report(watch: Watch, before: dict[str, float], after: dict[str, float]) -> dict[str, Any]:
    """Returns the figures in milliseconds."""
    gaps = [b - a for a, b in zip(watch.arrivals, watch.arrivals[1:], strict=False)]
    return {
        "slices": int(after["slice_lateness_ms_count"] - before["slice_lateness_ms_count"]),
        "missed": int(after["slices_missed_total"] - before["slices_missed_total"]),
        "lateness_ms": {name: after[f"slice_lateness_ms_{name}"] for name in ("p50", "p99", "max")},
        "feed_gap_ms": {"max": round(1000 * max(gaps, default=0.0), 1)},
        "submission_answered_ms": spread(watch.answered),
        "visible_ms": spread(watch.visible),
        "trivial_ms": spread(watch.trivial),
        "transactions_seen": len(watch.visible),
        "transactions_never_seen": len(watch.sent),
        "simulations": watch.simulations,
        "failures": watch.failures,
    }


def aims(found: dict[str, Any]) -> list[dict[str, object]]:
    """Returns each aim, and whether it was met."""
    return [
        aim(
            name,
            "ms" if figure else "slices",
            limit,
            found[group][figure] if figure else found[group],
        )
        for name, group, figure, limit in AIMS
    ]


def spread(seconds: list[float], digits: int = 1) -> dict[str, float]:
    """Returns median, 99th percentile and maximum in milliseconds, rounded to ``digits``."""
    shares = (("p50", 0.5), ("p99", 0.99), ("max", 1.0))
    return {name: round(1000 * percentile(seconds, share), digits) for name, share in shares}


def main() -> int:
    """Runs the benchmark and prints JSON. Returns 1 if an aim was missed."""
    parser = argparse.ArgumentParser(prog="python -m fastevm.bench.cadence", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="of load (%(default)s)")
    parser.add_argument("--connections", type=int, default=16, help="with simulations (16)")
    parser.add_argument("--rate", type=float, default=200.0, help="transactions per second (200)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of a simulated call's loop")
    parser.add_argument("node", nargs="*", help="more options for the node, after --")
    options = parser.parse_args()
    with fastevm_node(*options.node) as node:
        found = asyncio.run(measure(node.url, options))
    print(json.dumps(found, indent=2))
    return 0 if all(row["met"] for row in aims(found)) else 1


if __name__ == "__main__":
    sys.exit(main())
