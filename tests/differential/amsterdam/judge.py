"""Compares the outcomes of a case on fastevm and on the second implementation of Amsterdam."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from fastevm.core.primitives import rlp
from tests.differential.cases import Case
from tests.differential.compare import difference
from tests.differential.machine import Outcome, unhexed
from tests.differential.peers import Peer

from .blocks import run
from .generator import make_case

PARTS = ("storage changes", "storage reads", "balances", "nonces", "codes")


@dataclass
class Tally:
    """What was compared, and how often each rule was reached."""

    cases: int = 0
    programs: int = 0
    unsupported: int = 0
    transactions: Counter[str] = field(default_factory=Counter)
    reached: Counter[str] = field(default_factory=Counter)

    def count(self, case: Case, ours: Outcome, reached: dict[str, int]) -> None:
        self.cases += 1
        self.reached.update(reached)
        self.programs += case.programs
        self.transactions.update(done["status"] for done in ours["transactions"])

    def __str__(self) -> str:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.transactions.items()))
        return (
            f"{self.programs} programs in {self.cases} blocks, transactions: {kinds}; "
            f"{self.unsupported} blocks not comparable"
        )

    def reach(self, rules: str) -> str:
        """Returns how often each rule of a set was reached, one per line, the rarest first."""
        other = {"S": ": F ", "F": ": S "}[rules]
        found = [(count, name) for name, count in self.reached.items() if other not in name]
        return "\n".join(f"{count:9} {name}" for count, name in sorted(found))


def differences(
    peer: Peer, seeds: Iterable[int], fork: str, tally: Tally
) -> Iterator[tuple[int, Case, str]]:
    """Yields the seeds with differing cases, the cases, and descriptions of the differences."""
    asked: list[tuple[int, Case]] = []

    def questions() -> Iterator[str]:
        for seed in seeds:
            asked.append((seed, make_case(seed, fork)))
            yield asked[-1][1].dumps()

    for theirs in peer.run_all(questions()):
        seed, case = asked.pop(0)
        if "unsupported" in theirs:
            tally.unsupported += 1
            continue
        ours = run(case)
        tally.count(case, ours, theirs["reached"])
        found = block_difference(ours, theirs)
        if found:
            yield seed, case, found


def block_difference(ours: Outcome, theirs: Outcome) -> str | None:
    """Returns a description of the first difference, or None."""
    if "failure" not in theirs and ("refusal" in ours) != ("refusal" in theirs):
        return f"refused is {ours.get('refusal')}, the peer's {theirs.get('refusal')}"
    ours = {"state": {}, "root": None, **ours}
    found = difference(ours, theirs)
    if found or "refusal" in ours:
        return found
    if ours["requests"] != theirs["requests"]:
        return f"requests is {ours['requests']}, the peer's {theirs['requests']}"
    if ours["access_list"] != theirs["access_list"]:
        return list_difference(ours["access_list"], theirs["access_list"])
    return None


def list_difference(ours: str, theirs: str) -> str:
    """Returns the difference between two access lists."""
    our, their = listed(ours), listed(theirs)
    for address in sorted(our.keys() | their.keys()):
        item, other = our.get(address), their.get(address)
        if item is None or other is None:
            return f"listed of 0x{address.hex()} is {item is not None}, the peer's {not item}"
        for name, mine, yours in zip(PARTS, item, other, strict=True):
            if mine != yours:
                return f"{name} of 0x{address.hex()} is {mine}, the peer's {yours}"
    return f"access list is {ours}, the peer's {theirs}"


def listed(encoded: str) -> dict[bytes, list[Any]]:
    return {address: parts for address, *parts in rlp.decode(unhexed(encoded))}
