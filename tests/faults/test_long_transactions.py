"""Tests that transactions that run longer than a slice are not lost and delay no others."""

import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from fastevm.chain.pending_block import PendingBlock
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Receipt
from fastevm.errors import InvalidTransaction
from fastevm.node import Node, dev_node
from fastevm.node.dev_chain import DEV_CHAIN_ID, DEV_GAS_LIMIT
from fastevm.node.production import long_run
from fastevm.node.production.block_producer import MAX_TRIES
from fastevm.node.production.sliced_block import SlicedBlock
from tests.max_wait import MAX_WAIT

BLAKE2F = bytes(19) + b"\x09"
ROUNDS = 16_400_000  # BLAKE2F rounds that take about 0.2 s
DATA = ROUNDS.to_bytes(4, "big") + bytes(range(208)) + b"\x01"
LONG_GAS = 16_700_000
ATTACKERS = range(4)
HONEST = 5


class Watched:
    """A node that builds slices, with a list of the slices that it published."""

    def __init__(self, **options) -> None:
        self.node: Node = dev_node(accounts=6, **options)
        self.slices: list[PendingBlock] = []
        self.node.on_slice(lambda pending, first_new: self.slices.append(pending))
        self.sent: list[Transaction] = []

    def signed(self, who: int, **fields) -> Transaction:
        account = self.node.accounts[who]
        values = {"to": b"\xb0" * 20, "gas_limit": 21_000, "chain_id": DEV_CHAIN_ID}
        prices = {"max_fee_per_gas": 10**10, "max_priority_fee_per_gas": 10}
        nonce = {"nonce": self.node.pool.next_nonce(account.address)}
        made = Transaction.build(**{**values, **prices, **nonce, **fields})
        return made.sign(account.private_key)

    def submit(self, who: int, **fields) -> bytes:
        transaction = self.signed(who, **fields)
        self.sent.append(transaction)
        return self.node.submit(transaction.raw)

    def submit_long(self, who: int) -> bytes:
        prices = {"max_priority_fee_per_gas": 1_000}
        return self.submit(who, to=BLAKE2F, data=DATA, gas_limit=LONG_GAS, **prices)

    def shown(self) -> set[bytes]:
        return {
            transaction.hash
            for pending in list(self.slices)
            for transaction in pending.transactions
        }

    def wait(self, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + MAX_WAIT
        while not condition():
            assert time.monotonic() < deadline, "it never happened"
            time.sleep(0.005)


@pytest.fixture
def live() -> Iterator[Watched]:
    watched = Watched(block_time_ms=2_000, slice_interval_ms=100)
    watched.node.producer.start()
    yield watched
    watched.node.producer.stop()


class Held:
    """Makes the execution of one transaction wait until it is released or cancelled."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tx_hash = b""
        self.started = threading.Event()
        self.released = threading.Event()
        self.cancelled = threading.Event()
        self.cancellations = 0
        add, cancel = SlicedBlock.add, SlicedBlock.cancel

        def held(block: SlicedBlock, transaction: Transaction) -> Receipt:
            if transaction.hash == self.tx_hash:
                self.started.set()
                while not self.released.wait(0.002):
                    if self.cancelled.is_set():
                        self.cancelled.clear()
                        self.cancellations += 1
                        raise InvalidTransaction("cancelled", "execution aborted")
            return add(block, transaction)

        def cancelled(block: SlicedBlock) -> None:
            self.cancelled.set()
            cancel(block)

        monkeypatch.setattr(SlicedBlock, "add", held)
        monkeypatch.setattr(SlicedBlock, "cancel", cancelled)

    def begin(self, live: Watched) -> Transaction:
        """Submits a long transaction. Returns it as soon as its execution has begun."""
        transaction = live.signed(0, to=BLAKE2F, data=DATA, gas_limit=LONG_GAS)
        self.tx_hash = transaction.hash
        live.node.submit(transaction.raw)
        assert self.started.wait(MAX_WAIT)
        return transaction


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    made = Held(monkeypatch)
    yield made
    made.released.set()


def test_every_long_transaction_is_included_and_honest_ones_between_them(live: Watched) -> None:
    longs = [live.submit_long(who) for who in ATTACKERS]
    live.wait(lambda: live.node.metrics_registry.get("long_transactions_total"))
    transfers = []
    while not set(longs) <= live.shown():
        transfers.append(live.submit(HONEST))
        live.wait(lambda: transfers[-1] in live.shown())
    live.wait(lambda: all(live.node.chain.locate(long) for long in (*longs, *transfers)))
    assert len(transfers) >= 2
    assert all(live.node.pool.drop_reason(long) is None for long in longs)


def test_slices_are_published_while_a_long_transaction_executes(live: Watched, held: Held) -> None:
    transaction = held.begin(live)
    before = len(live.slices)
    live.wait(lambda: len(live.slices) >= before + 3)
    held.released.set()
    live.wait(lambda: transaction.hash in live.shown())
    transfer = live.submit(HONEST)
    live.wait(lambda: transfer in live.shown())
    live.wait(lambda: live.node.chain.locate(transaction.hash))
    by_block: dict[bytes, list[int]] = {}
    for pending in live.slices:
        by_block.setdefault(pending.payload_id, []).append(pending.slice_index)
    assert all(found == sorted(set(found)) for found in by_block.values())


def test_a_block_is_sealed_without_the_long_transaction_that_does_not_end(
    live: Watched, held: Held
) -> None:
    transaction = held.begin(live)
    transfer = live.submit(HONEST)
    live.wait(lambda: held.cancellations >= 1)
    live.wait(lambda: live.node.chain.locate(transfer))
    assert live.node.pool.find(transaction.hash) is not None, "it used no CPU, so it stays"
    held.released.set()
    live.wait(lambda: live.node.chain.locate(transaction.hash))


@pytest.mark.parametrize(("cpu_seconds", "tries"), [(10.0, 1), (0.5, MAX_TRIES)])
def test_what_no_block_has_time_for_leaves_with_a_reason_and_is_refused_again(
    live: Watched, held: Held, monkeypatch: pytest.MonkeyPatch, cpu_seconds: float, tries: int
) -> None:
    ticks = iter(range(10**6))
    clock = SimpleNamespace(thread_time=lambda: next(ticks) * cpu_seconds, monotonic=time.monotonic)
    monkeypatch.setattr(long_run, "time", clock)
    transaction = live.signed(0, to=BLAKE2F, data=DATA, gas_limit=LONG_GAS)
    held.tx_hash = transaction.hash
    live.node.submit(transaction.raw)
    live.wait(lambda: live.node.pool.find(transaction.hash) is None)
    assert held.cancellations == tries
    reason = live.node.pool.drop_reason(transaction.hash)
    assert reason is not None
    assert reason.startswith("execution takes too long")
    with pytest.raises(InvalidTransaction, match="execution takes too long") as refused:
        live.node.submit(transaction.raw)
    assert refused.value.code == "too_slow"
    transfer = live.submit(0)
    live.wait(lambda: live.node.chain.locate(transfer))


def test_a_sender_of_too_slow_transactions_is_refused_with_a_reason() -> None:
    watched = Watched()
    pool = watched.node.pool
    transaction = watched.signed(0, to=BLAKE2F, data=DATA, gas_limit=LONG_GAS)
    assert transaction.sender is not None
    pool.run_times.refuse_from(transaction.sender, LONG_GAS - 1)
    with pytest.raises(InvalidTransaction, match=f"one of this sender with {LONG_GAS - 1} gas"):
        watched.node.submit(transaction.raw)
    watched.node.submit(watched.signed(0).raw)
    watched.node.submit(watched.signed(1, to=BLAKE2F, data=DATA, gas_limit=LONG_GAS).raw)


def test_a_transaction_that_is_slower_than_expected_is_stopped_for_the_others() -> None:
    watched = Watched()
    node, producer = watched.node, watched.node.producer
    long = watched.signed(0, to=BLAKE2F, data=DATA, gas_limit=LONG_GAS, max_priority_fee_per_gas=99)
    assert long.sender is not None
    node.pool.run_times.learn(long, long.sender, 0.001, LONG_GAS)  # it was fast so far
    node.submit(long.raw)
    transfer = watched.submit(HONEST)
    producer.begin(0)
    assert producer.fill(DEV_GAS_LIMIT, time.monotonic() + MAX_WAIT) == 1
    assert [transaction.hash for transaction in producer.close_slice().transactions] == [transfer]
    assert node.pool.find(long.hash) is not None
    node.pool.open_slice(0, by_time=True)
    found = node.pool.best_long()
    assert found is not None
    assert found.hash == long.hash
    assert node.metrics_registry.get("transactions_postponed_total") == 1


def test_mining_on_demand_stops_a_long_transaction_and_includes_it(
    live: Watched, held: Held
) -> None:
    transaction = held.begin(live)
    threading.Timer(0.05, held.released.set).start()
    live.node.mine()
    live.wait(lambda: live.node.chain.locate(transaction.hash))


def test_a_moved_head_ends_the_long_transaction_of_the_block_before(
    live: Watched, held: Held
) -> None:
    transaction = held.begin(live)
    live.node.producer.restart()
    live.wait(lambda: held.cancellations >= 1)
    held.released.set()
    live.wait(lambda: live.node.chain.locate(transaction.hash))


def test_many_contracts_are_deployed_in_each_slice(live: Watched) -> None:
    """The node does not know how long a creation takes. A fast one must not use up the slice."""
    sent = [
        live.submit(who, to=None, data=b"\x00", gas_limit=3_000_000)
        for who in range(5)
        for _ in range(3)
    ]
    live.wait(lambda: set(sent) <= live.shown())
    assert live.node.metrics_registry.get("long_transactions_total") >= 5
