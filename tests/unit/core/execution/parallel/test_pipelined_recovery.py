"""Tests that a block gives the same result whether or not its senders were recovered before."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from fastevm.core.execution.transaction.senders import recover_senders
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.primitives.replace import replace
from tests.differential.parallel.blocks import Maker, RandomBlock


def unrecovered(block: RandomBlock) -> RandomBlock:
    return replace(
        block,
        transactions=[Transaction.decode(transaction.raw) for transaction in block.transactions],
    )


def known(block: RandomBlock) -> RandomBlock:
    block = unrecovered(block)
    recover_senders(block.transactions)
    return block


@pytest.fixture(autouse=True)
def three_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 3)


@pytest.mark.parametrize("first", range(0, 160, 20))
def test_random_blocks(first: int) -> None:
    for seed in range(first, first + 20):
        block = Maker(seed).block()
        expected = known(block).result(1)
        fresh = unrecovered(block)
        assert fresh.result(1) == expected
        assert unrecovered(block).result(2) == expected
        if "refused" not in expected:
            assert None not in [transaction.sender for transaction in fresh.transactions]


def valid_block() -> RandomBlock:
    blocks = (Maker(seed).block() for seed in range(100))
    return next(
        block
        for block in blocks
        if len(block.transactions) > 30
        and block.schedule.parameters["has_base_fee"]
        and "refused" not in block.result(1)
    )


@pytest.mark.parametrize("at", [0, 7, 8, 20, -1])
def test_a_signature_of_nobody_is_refused_in_its_turn(at: int) -> None:
    block = valid_block()
    block.transactions[at] = Transaction.build(v=27, r=5, s=1, gas_limit=21_000, gas_price=2_000)
    found = unrecovered(block).result(1)
    assert found == known(block).result(1)
    place = at % len(block.transactions)
    assert f"transactions[{place}]" in found["refused"]


def test_blocks_on_many_threads_at_once() -> None:
    block = valid_block()
    expected = known(block).result(1)

    def run(_: int) -> dict[str, Any]:
        return unrecovered(block).result(1)

    with ThreadPoolExecutor(4) as pool:
        assert all(found == expected for found in pool.map(run, range(40)))


def test_threads_may_run_the_same_transactions() -> None:
    block = valid_block()
    expected = known(block).result(1)
    for _ in range(10):
        shared = unrecovered(block)
        with ThreadPoolExecutor(4) as pool:
            found = pool.map(lambda block: block.result(1), [shared] * 4)
            assert all(item == expected for item in found)


@pytest.mark.parametrize("wrong", [None, b"\xc0"])
def test_only_transactions_are_run(wrong: Any) -> None:
    block = valid_block()
    with pytest.raises(TypeError):
        replace(block, transactions=[*block.transactions, wrong]).result(1)
