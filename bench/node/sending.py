"""Measures transactions per second: accepted by eth_sendRawTransaction, and included in blocks.

Many senders transfer one wei each. The transactions are signed beforehand and sent as fast as the
node responds. The run ends when the last transaction is in a canonical block. Both nodes have the
same block time.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from fastevm import keccak256
from fastevm.bench.node.compared import BLOCK_TIME, ComparedNode, start_anvil, start_fastevm
from fastevm.bench.node.content import WAIT_SECONDS, shown, signed, submit
from fastevm.bench.node.load import LoadError, batch_of, http
from fastevm.bench.report.figures import aim
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.node.dev_accounts import dev_accounts
from fastevm.rpc_client.messages import request_body

SENDERS: Final = 256
FUNDS: Final = 10**18
CONNECTIONS: Final = 16
BATCH: Final = 100
LOOK_EVERY: Final = 0.01  # seconds between polls
INCLUSION_SECONDS: Final = 60.0
MICRO: Final = 1e6
ROUNDS: Final = 3
COUNT: Final = 12_288  # transactions per round
QUICK_COUNT: Final = 1_024
MODES: Final = (("single", 1), (f"batches of {BATCH}", BATCH))


@dataclass(frozen=True, slots=True)
class Sender:
    """A private key that only this benchmark uses."""

    key: bytes
    address: bytes


def senders() -> list[Sender]:
    """Returns accounts that no other code uses."""
    keys = [keccak256(b"sender" + number.to_bytes(4, "big")) for number in range(SENDERS)]
    found = []
    for key in keys:
        probe = signed(key, 0, to=bytes(20), value=0)
        assert probe.sender is not None
        found.append(Sender(key, probe.sender))
    return found


class Sending:
    """A node that accepts transactions, with the nonces of its senders."""

    def __init__(self, node: ComparedNode) -> None:
        self.node = node
        self.load = node.load(CONNECTIONS)
        self.client = node.client()
        self.senders = senders()
        self.sent = 0
        self.rounds = 0
        self.fund()
        node.settle()

    def fund(self) -> None:
        """Gives each sender ether."""
        accounts = dev_accounts(10)
        nonces = [
            int(self.client.call("eth_getTransactionCount", shown(a.address), "latest"), 16)
            for a in accounts
        ]
        funding = [
            signed(
                accounts[i % 10].private_key, nonces[i % 10] + i // 10, to=sender.address,
                value=FUNDS,
            )
            for i, sender in enumerate(self.senders)
        ]  # fmt: skip
        submit(self.client, funding)
        wait_for(lambda: self.balance(self.senders[-1].address) == FUNDS, WAIT_SECONDS)

    def balance(self, address: bytes) -> int:
        """Returns the balance of an account in canonical blocks."""
        return int(self.client.call("eth_getBalance", shown(address), "latest"), 16)

    def transfers(self, count: int, target: bytes) -> list[Transaction]:
        """Returns the next transactions, from all senders in rotation."""
        first, self.sent = self.sent, self.sent + count
        return [
            signed(self.senders[i % SENDERS].key, i // SENDERS, to=target, value=1)
            for i in range(first, self.sent)
        ]

    def run(self, count: int, items: int) -> dict[str, float]:
        """Sends transactions.

        Returns the rates of accepted and included transactions, and CPU times.
        """
        self.rounds += 1
        target = keccak256(b"target" + self.rounds.to_bytes(4, "big"))[:20]
        bodies = [
            request_body("eth_sendRawTransaction", [shown(t.raw)])
            for t in self.transfers(count, target)
        ]
        requests = (
            [http(body) for body in bodies]
            if items == 1
            else [http(batch_of(bodies[i : i + items])) for i in range(0, count, items)]
        )
        head = self.client.call("eth_blockNumber")
        wait_for(lambda: self.client.call("eth_blockNumber") != head, WAIT_SECONDS)
        before, started = self.load.cpu(), time.perf_counter()
        sample = self.load.run(requests, items=items)
        wait_for(lambda: self.balance(target) == count, INCLUSION_SECONDS)
        took = time.perf_counter() - started
        return {
            "accepted_per_second": sample.rate * count / sample.calls,
            "accepted_cpu_us": sample.cpu / count * MICRO,
            "included_per_second": count / took,
            "included_cpu_us": (self.load.cpu() - before) / count * MICRO,
            "failures": sample.failures,
        }

    def close(self) -> None:
        """Stops the node."""
        self.load.close()
        self.client.close()
        self.node.stop()


def wait_for(happened: Callable[[], bool], seconds: float) -> None:
    """Waits until a condition holds. Raises LoadError after ``seconds``."""
    deadline = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > deadline:
            raise LoadError(f"what was sent is not in a block after {seconds:g} s")
        time.sleep(LOOK_EVERY)


Found = dict[str, dict[str, dict[str, float]]]  # mode -> node -> figures


def measure(progress: Callable[[str], None], quick: bool = False) -> Found:
    """Measures both nodes alternately. Returns medians of the rounds."""
    opened = [Sending(start_fastevm())]
    try:
        try:
            opened.append(Sending(start_anvil("--block-time", str(BLOCK_TIME))))
        except LoadError as reason:
            progress(f"anvil is left out: {reason}")
        runs: dict[tuple[str, str], list[dict[str, float]]] = {}
        for number in range(1 if quick else ROUNDS):
            progress(f"transactions, round {number + 1}")
            for mode, items in MODES:
                for side in opened:
                    figures = side.run(QUICK_COUNT if quick else COUNT, items)
                    runs.setdefault((mode, side.node.name), []).append(figures)
    finally:
        for side in opened:
            side.close()
    found: Found = {}
    for (mode, name), rows in runs.items():
        found.setdefault(mode, {})[name] = {
            key: round(statistics.median(row[key] for row in rows), 2) for key in rows[0]
        }
    return found


def aims(found: Found) -> list[dict[str, object]]:
    """Returns the aims for CPU time: at most anvil's to accept, at most a third to include."""
    rows = []
    for mode, by_node in found.items():
        if "anvil" not in by_node:
            continue
        own, other = by_node["fastevm"], by_node["anvil"]
        for what, limit in (("accepted", 1.0), ("included", 1 / 3)):
            share = own[f"{what}_cpu_us"] / other[f"{what}_cpu_us"]
            rows.append(aim(f"transactions {what}, {mode}", "of anvil's CPU time", limit, share))
    return rows


def table(found: Found) -> str:
    """Formats the figures as text."""
    lines = [f"{'transactions':40}{'cpu us':>10}{'anvil':>10}{'per s':>10}{'anvil':>10}"]
    for mode, by_node in found.items():
        for what in ("accepted", "included"):
            cells: list[Any] = []
            for column in (f"{what}_cpu_us", f"{what}_per_second"):
                for name in ("fastevm", "anvil"):
                    cells.append(by_node.get(name, {}).get(column, float("nan")))
            lines.append(f"{what + ', ' + mode:40}" + "".join(f"{cell:>10.1f}" for cell in cells))
    return "\n".join(lines)
