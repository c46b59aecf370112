"""Tests that mining seals the next block that a read has prepared, unless it is outdated."""

import time
from collections.abc import Callable

import pytest

from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.node import Mining, Node, dev_node, next_block
from fastevm.node.dev_chain import DEV_CHAIN_ID
from fastevm.node.production import block_producer
from tests.max_wait import MAX_WAIT

BOB = b"\xb0" * 20
CHANGES: dict[str, Callable[[Node], object]] = {
    "an account": lambda node: node.development.amend({"0x" + BOB.hex(): {"balance": "0x7"}}),
    "the coinbase": lambda node: node.development.settings.set_coinbase(BOB),
    "the time": lambda node: node.development.time.set_next(int(time.time()) + 5_000),
}  # fmt: skip


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Collects ``attempt`` of each block that the producer opens because none is prepared."""
    attempts: list[int] = []
    usual = block_producer.open_child_block

    def counted(*arguments: object, attempt: int, **options: object) -> object:
        attempts.append(attempt)
        return usual(*arguments, attempt=attempt, **options)

    monkeypatch.setattr(block_producer, "open_child_block", counted)
    return attempts


def payment(node: Node, nonce: int = 0) -> bytes:
    made = Transaction.build(
        to=BOB, value=5, gas_limit=21_000, chain_id=DEV_CHAIN_ID, nonce=nonce,
        max_fee_per_gas=10**10, max_priority_fee_per_gas=1,
    )  # fmt: skip
    return made.sign(node.accounts[0].private_key).raw


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> tuple[Node, Node]:
    """Provides two equal nodes with a fixed clock."""
    now = float(int(time.time()))
    monkeypatch.setattr(time, "time", lambda: now)
    made = [dev_node(accounts=1, mining=Mining.INSTANT, timestamp=int(now) - 9) for _ in range(2)]
    return made[0], made[1]


def test_what_was_looked_at_is_sealed(nodes: tuple[Node, Node], opened: list[int]) -> None:
    looking, other = nodes
    for nonce in range(3):
        pending = looking.next_block()
        assert pending is not None and not pending.transactions
        looking.submit(payment(looking, nonce))
    assert opened == []
    for nonce in range(3):
        other.submit(payment(other, nonce))
    assert len(opened) == 3
    assert looking.chain.head == other.chain.head
    assert pending.layer.balance(BOB) == 10  # the balance before the third payment


@pytest.mark.parametrize("change", CHANGES)
def test_after_a_change_it_is_forgotten(
    nodes: tuple[Node, Node], opened: list[int], change: str
) -> None:
    looking, other = nodes
    looking.next_block()
    for node in nodes:
        CHANGES[change](node)
        node.submit(payment(node))
    assert len(opened) == 2
    assert looking.chain.head == other.chain.head
    assert looking.chain.head.header.state_root == other.chain.head.header.state_root


def test_one_with_transactions_of_the_pool_is_not_sealed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(next_block, "FILL_SECONDS", MAX_WAIT)
    manual = dev_node(accounts=1, mining=Mining.MANUAL)
    for nonce in range(2):
        manual.submit(payment(manual, nonce))
    pending = manual.next_block()
    assert pending is not None and len(pending.transactions) == 2
    (block,) = manual.producer.mine()
    assert len(block.transactions) == 2
    assert manual.chain.layer_of(block.hash).balance(BOB) == 10
