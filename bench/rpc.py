"""This node beside anvil: the same requests over the same connections, in turns.

    python -m fastevm.bench.rpc [--quick] [--match NAME] [--json FILE] [--soak SECONDS]

Every round runs every case once on each node, so that a slow moment of the machine meets both.
Figures are medians of the rounds. The load generator has one of the cores while the nodes may use
both, so CPU time per call is the figure to compare; rates are shown beside it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from fastevm.bench.content import Content, prepare, shown, token_slot
from fastevm.bench.figures import aim
from fastevm.bench.full_load import FullLoad
from fastevm.bench.load import Load, LoadError, Sample, batch_of, body_of, http, summary
from fastevm.bench.nodes import BLOCK_TIME, NodeProcess, start_anvil, start_fastevm
from fastevm.bench.programs import BALANCE_OF, transfer, word
from fastevm.node.dev_accounts import dev_accounts

MANY: Final = 16  # connections
BATCH: Final = 100  # calls in one request
TURN_SECONDS: Final = 0.05  # of a case under full load
VARIANTS: Final = 32  # different requests of a case, taken in turn


@dataclass(frozen=True, slots=True)
class Effort:
    """How long and how often."""

    rounds: int
    seconds: float


THOROUGH: Final = Effort(5, 0.6)
QUICK: Final = Effort(1, 0.25)


@dataclass(frozen=True, slots=True)
class Case:
    """A method with params of its own for each variant.

    ``limit``: the most of anvil's CPU time that a single call may take; None for no aim.
    ``batched``: whether it is measured in batches too. ``same``: both nodes must answer alike.
    """

    name: str
    method: str
    params: Callable[[Content, int], list[Any]]
    limit: float | None = None
    batched: bool = True
    same: bool = False


ACCOUNTS: Final = tuple(account.address for account in dev_accounts(10))


def account(number: int) -> str:
    """One of the development accounts, in turn."""
    return shown(ACCOUNTS[number % len(ACCOUNTS)])


def token_transfer(content: Content, number: int) -> dict[str, str]:
    """A call that moves some of the token to a new address."""
    data = transfer(word(1_000_000 + number)[12:], 1_000)
    return {"from": account(number), "to": content.token, "data": shown(data)}


def balance_of(content: Content, number: int) -> dict[str, str]:
    """A call that asks for a balance of the token."""
    owner = ACCOUNTS[number % len(ACCOUNTS)]
    return {"to": content.token, "data": shown(BALANCE_OF + owner.rjust(32, b"\0"))}


def simulation(content: Content, number: int, blocks: int, calls: int) -> list[Any]:
    """A payload of so many blocks with so many transfers each."""
    made = [
        {"calls": [token_transfer(content, number * calls + j) for j in range(calls)]}
        for _ in range(blocks)
    ]
    return [{"blockStateCalls": made}, "latest"]


def transaction(content: Content, number: int) -> list[Any]:
    """The hash of one of the mined transfers."""
    return [content.transactions[number % len(content.transactions)]]


CASES: Final = (
    Case("block number", "eth_blockNumber", lambda c, i: [], 2.0),
    Case(
        "storage", "eth_getStorageAt",
        lambda c, i: [c.token, token_slot(ACCOUNTS[i % 10]), "latest"], 2.0, same=True,
    ),
    Case("nonce", "eth_getTransactionCount", lambda c, i: [account(i), "latest"], 2.0, same=True),
    Case("balance", "eth_getBalance", lambda c, i: [account(i), "latest"], 2.0),
    Case("call, trivial", "eth_call", lambda c, i: [{"to": c.answer}, "latest"], 1.0, same=True),
    Case(
        "call, balanceOf", "eth_call", lambda c, i: [balance_of(c, i), "latest"], 1.0, same=True
    ),
    Case("estimate gas", "eth_estimateGas", lambda c, i: [token_transfer(c, i), "latest"], 1.0),
    Case("simulate 1 x 1", "eth_simulateV1", lambda c, i: simulation(c, i, 1, 1), 1.0),
    Case(
        "simulate 10 x 20", "eth_simulateV1", lambda c, i: simulation(c, i, 10, 20), 0.2,
        batched=False,
    ),
    Case("block, hashes", "eth_getBlockByNumber", lambda c, i: [c.block, False], 2.0),
    Case("block, full", "eth_getBlockByNumber", lambda c, i: [c.block, True], 2.0),
    Case("transaction", "eth_getTransactionByHash", transaction, 2.0),
    Case("receipt", "eth_getTransactionReceipt", transaction, 2.0),
    Case("block receipts", "eth_getBlockReceipts", lambda c, i: [c.block], 2.0),
)  # fmt: skip

Mode = tuple[str, int, int]  # name, connections, calls in a request
MODES: Final[tuple[Mode, ...]] = (
    ("1 connection", 1, 1),
    (f"{MANY} connections", MANY, 1),
    (f"batches of {BATCH}", 1, BATCH),
    (f"batches of {BATCH}, {MANY} connections", MANY, BATCH),
)


def requests_of(case: Case, content: Content, items: int) -> list[bytes]:
    """The requests of a case, as bytes for the socket."""
    bodies = [
        body_of(case.method, case.params(content, number), number)
        for number in range(max(items, VARIANTS))
    ]
    if items == 1:
        return [http(body) for body in bodies]
    return [http(batch_of(bodies[:items]))]


class Side:
    """A node with its content, its connections and its requests."""

    def __init__(self, node: NodeProcess) -> None:
        self.node = node
        self.loads: dict[int, Load] = {count: node.load(count) for count in (1, MANY)}
        self.content = prepare(self.loads[1])
        node.settle()
        self.requests: dict[tuple[str, int], list[bytes]] = {}

    def run(self, case: Case, mode: Mode, seconds: float) -> Sample:
        """One turn of a case."""
        _, connections, items = mode
        key = case.name, items
        if key not in self.requests:
            self.requests[key] = requests_of(case, self.content, items)
        return self.loads[connections].run(self.requests[key], items=items, seconds=seconds)

    def answer(self, case: Case) -> Any:
        """What the node answers to the first request of a case."""
        return self.loads[1].ask(case.method, case.params(self.content, 0))

    def close(self) -> None:
        """Close the connections and end the node."""
        for load in self.loads.values():
            load.close()
        self.node.stop()


@contextmanager
def sides(progress: Callable[[str], None], peers: bool = True) -> Iterator[list[Side]]:
    """Both nodes, or this one alone where anvil cannot be had."""
    opened = [Side(start_fastevm())]
    try:
        if peers:
            try:
                opened.append(Side(start_anvil("--block-time", str(BLOCK_TIME))))
            except LoadError as reason:
                progress(f"anvil is left out: {reason}")
        yield opened
    finally:
        for side in opened:
            side.close()


def modes_of(case: Case) -> tuple[Mode, ...]:
    """The modes in which a case is measured."""
    return MODES if case.batched else MODES[:2]


Found = dict[str, dict[str, dict[str, dict[str, float]]]]  # case -> mode -> node -> figures


def compare(
    opened: list[Side], chosen: list[Case], effort: Effort, progress: Callable[[str], None]
) -> Found:
    """Run all cases in turns."""
    for case in chosen:
        answers = [side.answer(case) for side in opened]
        if case.same and any(answer != answers[0] for answer in answers):
            raise LoadError(f"{case.name}: the nodes answer differently: {answers}")
    samples: dict[tuple[str, str, str], list[Sample]] = {}
    memory: Found = {}
    for number in range(effort.rounds):
        progress(f"round {number + 1} of {effort.rounds}")
        for case in chosen:
            for mode in modes_of(case):
                for side in opened:
                    sample = side.run(case, mode, effort.seconds)
                    name = side.node.name
                    samples.setdefault((case.name, mode[0], name), []).append(sample)
                    by_mode = memory.setdefault(case.name, {}).setdefault(mode[0], {})
                    by_mode[name] = summary(samples[case.name, mode[0], name])
                    by_mode[name]["memory"] = side.node.memory()
    return memory


def aims(found: Found) -> list[dict[str, object]]:
    """CPU per call as a share of anvil's, against what is aimed at."""
    limits = {case.name: case.limit for case in CASES}
    rows = []
    for name, by_mode in found.items():
        for mode, by_node in by_mode.items():
            single = limits[name]
            if single is None or "anvil" not in by_node:
                continue
            limit = min(single, 1.0) if mode.startswith("batches") else single
            share = by_node["fastevm"]["cpu_us"] / max(by_node["anvil"]["cpu_us"], 0.01)
            rows.append(aim(f"{name}, {mode}", "of anvil's CPU time", limit, share))
    return rows


def table(found: Found) -> str:
    """The figures as text."""
    lines = [f"{'case':44}{'cpu us':>10}{'anvil':>10}{'ratio':>7}{'per s':>10}{'anvil':>10}"]
    for name, by_mode in found.items():
        for mode, by_node in by_mode.items():
            own, other = by_node["fastevm"], by_node.get("anvil")
            line = f"{name + ', ' + mode:44}{own['cpu_us']:>10.2f}"
            if other is None:
                line += f"{'-':>10}{'-':>7}{own['per_second']:>10.0f}{'-':>10}"
            else:
                ratio = own["cpu_us"] / max(other["cpu_us"], 0.01)
                line += f"{other['cpu_us']:>10.2f}{ratio:>7.2f}"
                line += f"{own['per_second']:>10.0f}{other['per_second']:>10.0f}"
            if own["failures"] or (other and other["failures"]):
                line += "  FAILURES"
            lines.append(line)
    return "\n".join(lines)


def measure(progress: Callable[[str], None], quick: bool = False) -> Found:
    """Everything, on both nodes."""
    with sides(progress) as opened:
        return compare(opened, list(CASES), QUICK if quick else THOROUGH, progress)


def turns(side: Side) -> Iterator[Sample]:
    """Every case in every mode, each for a moment."""
    for case in CASES:
        for mode in modes_of(case):
            yield side.run(case, mode, TURN_SECONDS)


def main(argv: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m fastevm.bench.rpc", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short round")
    parser.add_argument("--match", default="", help="only cases whose name contains this")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument(
        "--soak",
        type=float,
        metavar="SECONDS",
        help="load this node alone with everything; fails unless its memory stays flat",
    )
    options = parser.parse_args(argv)

    def progress(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    if options.soak is not None:
        with sides(progress, peers=False) as opened:
            return FullLoad(opened[0], turns).run(options.soak, partial(print, flush=True))
    chosen = [case for case in CASES if options.match in case.name]
    with sides(progress) as opened:
        found = compare(opened, chosen, QUICK if options.quick else THOROUGH, progress)
    print(table(found))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
