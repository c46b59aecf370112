"""Tests that random OP-stack blocks have equal results on fastevm and on the transcription.

Compares which transactions are valid, receipts, gas, logs, fees, the state and the block's hash.
fastevm must reject wrong headers. For more blocks run `python -m tests.differential.op_stack
--help`.
"""

import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from fastevm.core.execution.op_stack.l1_fees import compressed_size
from tests.differential.peers import Peer

from .campaign import reported, run
from .generator import make_block
from .specification.fastlz import fastlz_length
from .specification.forks import Fork
from .transaction_maker import text_like_data

FIRST_SEED = 1_000_000
TRANSACTIONS = 40


@pytest.mark.parametrize("fork", Fork, ids=[fork.title for fork in Fork])
def test_blocks_do_the_same(peer: Callable[[str], Peer], fork: Fork) -> None:
    tally = run(peer("op-stack"), fork, FIRST_SEED, TRANSACTIONS)
    assert not tally.found, "\n\n".join(
        f"{difference.words}\n{json.dumps(difference.case)}" for difference in tally.found
    )
    assert tally.deposits["success"] and tally.others["success"]


def texts(random: Random) -> Iterator[bytes]:
    """Yields data similar to transactions.

    Each text is also cut off at a random length, because the end of the data limits matches.
    """
    for _ in range(150):
        text = text_like_data(random)
        yield text
        yield text[: random.randrange(80)]
        yield bytes(random.choice(b"ab") for _ in range(random.randrange(300)))


def test_lengths_of_compressed_data_are_the_same() -> None:
    differing = [
        text.hex() for text in texts(Random(1)) if compressed_size(text) != fastlz_length(text)
    ]
    assert not differing


Change = Callable[[dict[str, Any]], None]


def another_gas(outcome: dict[str, Any]) -> None:
    outcome["transactions"][0]["gas_used"] += 1


def another_validity(outcome: dict[str, Any]) -> None:
    outcome["transactions"][0] = {"valid": False, "reason": "why not"}


def another_balance(outcome: dict[str, Any]) -> None:
    next(iter(outcome["post"].values()))["balance"] += 1


def another_account(outcome: dict[str, Any]) -> None:
    outcome["post"]["0x" + "99" * 20] = {"nonce": 1, "balance": 0, "code": "0x", "storage": {}}


@pytest.mark.parametrize(
    "change", [another_gas, another_validity, another_balance, another_account]
)
def test_a_difference_is_seen(peer: Callable[[str], Peer], change: Change) -> None:
    case = make_block(FIRST_SEED, Fork.HOLOCENE)
    expected = peer("op-stack").run(json.dumps(case))
    assert reported(case, expected) == []
    change(expected)
    assert reported(case, expected)


def test_a_fee_that_differs_is_seen(peer: Callable[[str], Peer]) -> None:
    case = make_block(FIRST_SEED, Fork.FJORD)
    expected = peer("op-stack").run(json.dumps(case))
    of_user = [done for done in expected["transactions"] if done.get("l1_fee")]
    of_user[0]["l1_fee"] += 1
    assert "L1 fee" in reported(case, expected)[0]


def test_blocks_of_a_seed_are_the_same_each_time() -> None:
    assert make_block(3, Fork.KARST) == make_block(3, Fork.KARST)
    assert make_block(3, Fork.KARST) != make_block(4, Fork.KARST)
