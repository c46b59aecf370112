"""Compares random blocks of a fork on fastevm and the transcription, and minimises differences."""

import json
import re
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.differential.peers import Peer

from .generator import make_block
from .product import differences, is_taken
from .specification.forks import Fork

Fields = dict[str, Any]
DEPOSIT = "0x7e"
# at most this many differences of a fork are minimised
MOST_MINIMISED = 3
# differences that begin with the same characters count as the same kind
SAME_KIND = 40


@dataclass
class Difference:
    """A block on which fastevm and the transcription disagree, minimised."""

    fork: Fork
    seed: int
    words: list[str]
    case: Fields


@dataclass
class Tally:
    """How many transactions of each kind a fork's blocks contained, and the differences."""

    blocks: int = 0
    candidates: int = 0
    executed: int = 0
    first_blocks: int = 0
    deposits: Counter[str] = field(default_factory=Counter)
    others: Counter[str] = field(default_factory=Counter)
    found: list[Difference] = field(default_factory=list)

    def count(self, case: Fields, expected: Fields) -> None:
        self.blocks += 1
        self.candidates += len(case["transactions"])
        self.first_blocks += case["fork"] != case["parent_fork"]
        outcomes = expected.get("transactions", ())
        for text, outcome in zip(case["transactions"], outcomes, strict=False):
            kind = self.deposits if text.startswith(DEPOSIT) else self.others
            kind[class_of(outcome)] += 1
            self.executed += outcome["valid"]


def class_of(outcome: Fields) -> str:
    """Describes how a transaction ended."""
    if not outcome["valid"]:
        return f"refused: {outcome['reason']}"
    return f"failed: {outcome['error']}" if outcome["error"] else "success"


def reported(case: Fields, expected: Fields) -> list[str]:
    """Returns the differences of a case.

    If fastevm or the transcription fails, that is a difference.
    """
    if "failure" in expected:
        return [f"the transcription failed: {expected['failure']}"]
    try:
        return differences(case, expected)
    except Exception:
        return [f"the product failed: {traceback.format_exc()}"]


def reported_of_users(peer: Peer, case: Fields, expected: Fields) -> list[str]:
    """Returns a difference if fastevm accepts users' transactions where only deposits are valid.

    Since Jovian, the first block of a fork has only deposits. The transcription executes the block
    without this rule, and fastevm must reject the result.
    """
    if not any(
        outcome.get("reason", "").startswith("only deposits")
        for outcome in expected["transactions"]
    ):
        return []
    lax = case | {"takes_users": True}
    outcome = peer.run(json.dumps(lax))
    has_users = any(
        done["valid"] and not text.startswith(DEPOSIT)
        for text, done in zip(case["transactions"], outcome["transactions"], strict=True)
    )
    if has_users and is_taken(lax, outcome):
        return ["an import takes a fork's first block with transactions of users"]
    return []


def run(peer: Peer, fork: Fork, first_seed: int, transactions: int) -> Tally:
    """Compares blocks of consecutive seeds until ``transactions`` transactions were executed."""
    tally, seed = Tally(), first_seed
    while tally.executed < transactions:
        case = make_block(seed, fork)
        expected = peer.run(json.dumps(case))
        tally.count(case, expected)
        words = reported(case, expected) or reported_of_users(peer, case, expected)
        if words:
            difference = Difference(fork, seed, words, case)
            if len(tally.found) < MOST_MINIMISED:
                difference = minimised(peer, difference)
            tally.found.append(difference)
        seed += 1
    return tally


def minimised(peer: Peer, difference: Difference) -> Difference:
    """Removes transactions, then accounts, while the case shows the same kind of difference."""

    def still(case: Fields) -> list[str]:
        expected = peer.run(json.dumps(case))
        words = reported(case, expected) or reported_of_users(peer, case, expected)
        return words if words and kind_of(words) == kind else []

    case = difference.case
    kind = kind_of(difference.words)
    case = smaller(case, "transactions", list, still)
    case = smaller(case, "pre", dict, still)
    words = still(case) or difference.words
    return Difference(difference.fork, difference.seed, words, case)


def kind_of(words: list[str]) -> str:
    """Returns a difference without its values and cut off, so that equal kinds are equal."""
    return re.sub("0x[0-9a-f]+|[0-9]+", "", words[0])[:SAME_KIND]


def smaller(case: Fields, name: str, kind: type, still: Callable[[Fields], list[str]]) -> Fields:
    """Removes all parts of a member that the difference does not need. Returns the smaller case."""
    parts = list(case[name].items() if kind is dict else case[name])
    index = len(parts) - 1
    while index >= 0:
        shorter = parts[:index] + parts[index + 1 :]
        tried = case | {name: kind(shorter)}
        if still(tried):
            parts, case = shorter, tried
        index -= 1
    return case
