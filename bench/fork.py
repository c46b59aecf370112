"""Compares forks of a node by fastevm, ``anvil --fork-url`` and pyrevm, cold and warm.

``python -m fastevm.bench.fork`` starts anvil with 4,000 blocks as the upstream, and a proxy that
delays every round trip. Each side gets the same requests: one balance, one hundred balances, a swap
across five pools, 1,000 bundles, and the execution of a block of 200 transactions. ``cold`` is a
new fork, and ``warm`` is the same request again on the same fork. ``disk`` is a new fork of fastevm
with a filled cache, and ``local`` has the same accounts without a fork. Opening the fork has a
separate row, and is part of the time only for the block. The sides alternate; figures are medians.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from fastevm.bench.engines.evms import PeerError
from fastevm.bench.node.load import LoadError
from fastevm.bench.remote import market, market_nodes
from fastevm.bench.remote.market_nodes import Busy, Upstream
from fastevm.bench.remote.proxy import ProxyProcess
from fastevm.bench.remote.sides import Anvil, Bundles, Fastevm, Local, Pyrevm, Side
from fastevm.errors import FastevmError

LATENCIES: Final = (0, 50, 100)  # milliseconds
BUNDLES: Final = 1_000
HOLDER: Final = 3
QUICK_BUNDLES: Final = 50
QUICK_BLOCKS: Final = 20
WARM_RUNS: Final = 5
MANY_WARM_RUNS: Final = 50
SHORT: Final = 0.2  # seconds; a request with a shorter cold run has more warm runs
SIDES: Final = ("fastevm", "anvil", "pyrevm")
BLOCK: Final = "block of 200"
OPENING: Final = "open"
AIM: Final = "multicall"
Question = tuple[str, Bundles]


def questions(bundles: int) -> list[Question]:
    """Returns the requests that each side gets."""
    return [
        ("balanceOf", [[market.balance_call(0, HOLDER)]]),
        (AIM, [[market.multicall(HOLDER)]]),
        ("swap of 5 pools", [[market.swap()]]),
        (f"{bundles:,} bundles", [market.bundle(number) for number in range(bundles)]),
    ]


@dataclass(slots=True)
class Figures:
    """The runs of one request on one side. ``trips``: number of round trips."""

    seconds: list[float] = field(default_factory=list)
    requests: int = 0
    trips: int = 0
    received: int = 0  # bytes

    def shown(self) -> dict[str, float]:
        """Returns medians for the report."""
        return {
            "seconds": round(statistics.median(self.seconds), 6), "requests": self.requests,
            "round_trips": self.trips, "bytes": self.received,
        }  # fmt: skip


Found = dict[tuple[int, str, str, str], Figures]  # latency, question, temperature, side


class Comparison:
    """Runs the requests on all compared forks, which share one proxy."""

    def __init__(
        self, upstream: Upstream, sides: Sequence[Side], progress: Callable[[str], None]
    ) -> None:
        assert upstream.busy is not None
        self.upstream, self.sides, self.progress = upstream, sides, progress
        self.busy: Busy = upstream.busy
        self.head = upstream.head - 1  # one below the head: anvil requests its newest block again
        self.proxy = ProxyProcess(upstream.url)
        self.found: Found = {}
        self.outputs: dict[str, list[bytes]] = {}

    def note(self, latency: int, question: str, temperature: str, side: str, took: float) -> None:
        """Records a time, and the proxy's traffic since the previous record."""
        figures = self.found.setdefault((latency, question, temperature, side), Figures())
        traffic = self.proxy.count_anew()
        figures.seconds.append(took)
        figures.requests, figures.trips = traffic.requests, traffic.round_trips
        figures.received = traffic.received

    def ask(self, latency: int, side: Side, question: Question) -> None:
        """Opens a fork for each request, and runs the request cold, then warm."""
        name, bundles = question
        self.proxy.count_anew()
        self.note(latency, OPENING, "cold", side.name, side.open(self.proxy.url, self.head))
        took, outputs = side.run(bundles)
        self.note(latency, name, "cold", side.name, took)
        if self.outputs.setdefault(name, outputs) != outputs:
            raise LoadError(f"{side.name} gives other outputs for {name}")
        for _ in range(WARM_RUNS if took > SHORT else MANY_WARM_RUNS):
            self.note(latency, name, "warm", side.name, side.run(bundles)[0])
        side.close()

    def again(self, latency: int, side: Side) -> None:
        """Executes the block of 200 transactions on a new fork of its parent."""
        self.proxy.count_anew()
        took, succeeded = side.replay(self.proxy.url, self.busy)
        self.note(latency, BLOCK, "cold", side.name, took)
        side.close()
        if succeeded != len(self.busy.transactions):
            raise LoadError(f"{side.name}: {succeeded} transactions of the block succeed")

    def from_disk(self, latency: int, asked: Sequence[Question]) -> None:
        """Fills a disk cache with one fork, then reads it with another."""
        for name, bundles in asked:
            with tempfile.TemporaryDirectory() as folder:
                for filling in (True, False):
                    side = Fastevm(Path(folder))
                    side.open(self.proxy.url, self.head)
                    self.proxy.count_anew()
                    took, _ = side.run(bundles)
                    if not filling:
                        self.note(latency, name, "disk", side.name, took)
                    side.close()

    def one_round(self, latency: int, sides: Sequence[Side], asked: Sequence[Question]) -> None:
        """Runs each request once on each side. The sides alternate."""
        self.proxy.wait_for(latency / 1000)
        for question in asked:
            for side in sides:
                self.progress(f"{latency} ms: {question[0]}, {side.name}")
                self.ask(latency, side, question)
        for side in sides:
            self.progress(f"{latency} ms: {BLOCK}, {side.name}")
            self.again(latency, side)

    def close(self) -> None:
        """Ends the proxy and the sides."""
        for side in self.sides:
            side.close()
        self.proxy.close()


def sides_here(names: Sequence[str], progress: Callable[[str], None]) -> list[Side]:
    """Returns the available sides with these names, fastevm first."""
    found: list[Side] = [Fastevm()] if Fastevm.name in names else []
    for make in (Anvil, Pyrevm):
        if make.name not in names:
            continue
        try:
            found.append(make())
        except LoadError as reason:
            progress(f"{make.name} is left out: {reason}")
    return found


def start_upstream(quick: bool, progress: Callable[[str], None]) -> Upstream:
    """Returns anvil with the market and many blocks; our node if anvil is not available."""
    blocks = QUICK_BLOCKS if quick else market_nodes.EMPTY_BLOCKS
    try:
        node = market_nodes.start_anvil(market.empty_genesis())
    except LoadError as reason:
        progress(f"the node that is forked is fastevm's own: {reason}")
        node = market_nodes.start_own()
    try:
        node.make_blocks(blocks)
    except BaseException:
        node.close()
        raise
    return node


def measure(
    progress: Callable[[str], None],
    *,
    latencies: Sequence[int],
    rounds: int,
    quick: bool = False,
    names: Sequence[str] = SIDES,
) -> dict[str, Any]:
    """Returns all figures. Peers run all ``rounds`` only at the first latency."""
    asked = questions(QUICK_BUNDLES if quick else BUNDLES)
    with start_upstream(quick, progress) as upstream:
        comparison = Comparison(upstream, sides_here(names, progress), progress)
        try:
            for latency in latencies:
                for number in range(rounds):
                    # with latency, a round of the peers takes minutes
                    slow = number > 0 and latency > 0
                    comparison.one_round(latency, comparison.sides[: 1 if slow else None], asked)
                    if Fastevm.name in names:
                        comparison.from_disk(latency, asked)
            local = Local(len(comparison.busy.transactions))
            comparison.one_round(0, [local], asked)
        finally:
            comparison.close()
    return document(comparison.found, upstream.name)


def document(found: Found, upstream: str) -> dict[str, Any]:
    """Formats the figures for the report."""
    rows = [
        {"latency_ms": latency, "question": question, "state": temperature, "side": side,
         **figures.shown()}
        for (latency, question, temperature, side), figures in found.items()
    ]  # fmt: skip
    return {"upstream": upstream, "rows": rows, "ratios": ratios(found)}


def ratios(found: Found) -> list[dict[str, Any]]:
    """Returns each peer's time, and the time without a fork, divided by fastevm's."""
    rows = []
    for (latency, question, temperature, side), figures in found.items():
        ours = found.get((latency, question, temperature, "fastevm"))
        if ours is None or side == "fastevm":
            continue
        rows.append(
            {"latency_ms": latency, "question": question, "state": temperature, "side": side,
             "times_ours": round(figures.shown()["seconds"] / ours.shown()["seconds"], 2)}
        )  # fmt: skip
    return rows


def table(found: dict[str, Any]) -> str:
    """Formats the figures as text."""
    ratio = {
        (each["latency_ms"], each["question"], each["state"], each["side"]): each["times_ours"]
        for each in found["ratios"]
    }
    lines = [f"{'ms':>4} {'question':<17}{'state':<6}{'side':<9}{'seconds':>12}{'x ours':>10}"
             f"{'requests':>10}{'trips':>7}{'kB':>9}"]  # fmt: skip
    for each in sorted(found["rows"], key=lambda row: (row["latency_ms"], row["question"])):
        key = (each["latency_ms"], each["question"], each["state"], each["side"])
        times = f"{ratio[key]:.1f}" if key in ratio else ""
        lines.append(
            f"{each['latency_ms']:>4} {each['question']:<17}{each['state']:<6}{each['side']:<9}"
            f"{each['seconds']:>12.6f}{times:>10}{each['requests']:>10}{each['round_trips']:>7}"
            f"{each['bytes'] / 1000:>9.1f}"
        )
    return "\n".join(lines)


def main() -> int:
    """Measures, prints a table and writes figures. Returns 2 if nothing can be measured."""
    parser = argparse.ArgumentParser(
        prog="python -m fastevm.bench.fork", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures here")
    parser.add_argument("--rounds", type=int, default=3, help="(default: %(default)s)")
    parser.add_argument(
        "--latencies", default=",".join(map(str, LATENCIES)), metavar="MS,...",
        help="of a round trip (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--sides", default=",".join(SIDES), metavar="NAMES", help="(default: %(default)s)"
    )
    parser.add_argument("--quick", action="store_true", help="few blocks and bundles")
    arguments = parser.parse_args()
    latencies = [int(each) for each in arguments.latencies.split(",")]
    try:
        found = measure(
            progress, latencies=latencies, rounds=arguments.rounds, quick=arguments.quick,
            names=arguments.sides.split(","),
        )  # fmt: skip
    except (LoadError, PeerError, FastevmError, OSError) as error:
        print(f"fastevm.bench.fork: {error}", file=sys.stderr)
        return 2
    print(table(found))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


def progress(text: str) -> None:
    """Prints the progress to standard error."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
