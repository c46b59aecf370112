"""Tests that the log index finds the logs of all receipts after every chain change."""

import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastevm.chain.fork_choice import HeadChange
from fastevm.chain.logs import LogIndex, LogLimits, LogQuery
from fastevm.chain.logs.index import PAGE_BLOCKS
from fastevm.core.execution.types import Block, Header, Log, Receipt
from fastevm.core.primitives.bloom import bloom_of

ADDRESSES = [bytes([n]) * 20 for n in range(1, 5)]
FIRST = 7  # a chain need not begin with block 0
TRANSACTION = SimpleNamespace(hash=b"\x11" * 32)
LIMITS = LogLimits()


def receipt(logs: Sequence[Log]) -> Receipt:
    return Receipt(
        tx_type=2,
        status=1,
        post_state=None,
        cumulative_gas_used=21_000,
        logs=tuple(logs),
        bloom=bloom_of(logs),
        gas_used=21_000,
        effective_gas_price=1,
    )


@dataclass
class FakeChain:
    """A chain whose blocks have one transaction each.

    It has no listeners, so tests pass each change to the index. ``unpacked`` has an entry for each
    read of receipts.
    """

    blocks: list[Block] = field(default_factory=lambda: [Block(Header(number=FIRST))])
    receipts: dict[bytes, tuple[Receipt, ...]] = field(default_factory=dict)
    unpacked: list[int] = field(default_factory=list)

    @property
    def genesis(self) -> Block:
        return self.blocks[0]

    @property
    def head(self) -> Block:
        return self.blocks[-1]

    def block_by_number(self, number: int) -> Block | None:
        return self.blocks[number - FIRST] if 0 <= number - FIRST < len(self.blocks) else None

    def canonical_hash(self, number: int) -> bytes | None:
        found = self.block_by_number(number)
        return None if found is None else found.hash

    def receipts_of(self, block_hash: bytes) -> tuple[Receipt, ...]:
        self.unpacked.append(len(self.receipts))
        return self.receipts.get(block_hash, ())

    def grow(self, *kinds: int, salt: int = 0) -> Block:
        """Adds a block with a log for each kind. A kind is the index of an address in ADDRESSES."""
        logs = [
            Log(ADDRESSES[kind], (), self.head.number.to_bytes(4, "big") + bytes([index]))
            for index, kind in enumerate(kinds)
        ]
        header = Header(
            number=self.head.number + 1,
            parent_hash=self.head.hash,
            logs_bloom=bloom_of(logs),
            extra_data=salt.to_bytes(4, "big"),
        )
        block = Block(header, (TRANSACTION,))  # type: ignore[arg-type]
        self.receipts[block.hash] = (receipt(logs),)
        self.blocks.append(block)
        return block

    def shrink(self, kept: int) -> list[Block]:
        """Removes blocks until ``kept`` remain. Returns the removed blocks, newest first."""
        removed = self.blocks[kept:][::-1]
        del self.blocks[kept:]
        return removed

    def naive(self, first: int, last: int, kind: int) -> list[tuple[int, bytes]]:
        return [
            (block.number, log.data)
            for block in self.blocks
            if first <= block.number <= last
            for outcome in self.receipts.get(block.hash, ())
            for log in outcome.logs
            if log.address == ADDRESSES[kind]
        ]


def found(index: LogIndex, first: int, last: int, kind: int) -> list[tuple[int, bytes]]:
    query = LogQuery([ADDRESSES[kind]])
    return [
        (block.number, log.data)
        for part in index.blocks(first, last, query)
        for block in part
        for _, log in block.select(query)
    ]


def numbers(index: LogIndex, first: int, last: int, addresses: Collection[bytes]) -> list[int]:
    query = LogQuery(addresses)
    return [block.number for part in index.blocks(first, last, query) for block in part]


def change(removed: list[Block], added: list[Block]) -> HeadChange:
    return HeadChange(tuple(removed), tuple(added))


@pytest.fixture
def chain() -> FakeChain:
    chain = FakeChain()
    for number in range(20):
        chain.grow(*([number % 4] if number % 3 else []), salt=number)
    return chain


def test_a_range_gives_its_logs(chain: FakeChain) -> None:
    index = LogIndex(chain)
    assert len(index) == 21
    for kind in range(4):
        for first, last in ((FIRST, FIRST + 20), (FIRST + 5, FIRST + 9)):
            assert found(index, first, last, kind) == chain.naive(first, last, kind)


def test_no_constraint_takes_every_block(chain: FakeChain) -> None:
    assert numbers(LogIndex(chain), 0, 10**9, []) == list(range(FIRST, FIRST + 21))


@pytest.mark.parametrize(("first", "last"), [(0, 6), (28, 40), (10, 9), (10**9, 10**9 + 1)])
def test_outside_the_chain_there_is_nothing(chain: FakeChain, first: int, last: int) -> None:
    assert numbers(LogIndex(chain), first, last, []) == []


def test_an_index_that_is_behind_reads_the_rest_from_the_chain(chain: FakeChain) -> None:
    index = LogIndex(chain)
    for _ in range(3):
        chain.grow(1)
    assert len(index) == 21
    assert found(index, FIRST, FIRST + 23, 1) == chain.naive(FIRST, FIRST + 23, 1)


def test_an_index_of_another_branch_reads_everything_from_the_chain(chain: FakeChain) -> None:
    index = LogIndex(chain)
    removed = chain.shrink(15)
    for _ in range(9):
        chain.grow(2, salt=99)
    assert found(index, FIRST, FIRST + 30, 2) == chain.naive(FIRST, FIRST + 30, 2)
    index.update(change(removed, chain.blocks[15:]))
    assert len(index) == len(chain.blocks)
    assert found(index, FIRST, FIRST + 30, 2) == chain.naive(FIRST, FIRST + 30, 2)


def test_a_head_that_only_goes_back_leaves_the_index_in_step(chain: FakeChain) -> None:
    index = LogIndex(chain)
    index.update(change(chain.shrink(10), []))
    assert len(index) == 10
    chain.unpacked.clear()
    block = chain.grow(3)
    index.update(change([], [block]))
    assert found(index, block.number, block.number, 3) == chain.naive(FIRST, FIRST + 99, 3)[-1:]
    assert len(chain.unpacked) == 1


def test_new_blocks_are_packed_once_and_old_ones_when_asked_for(chain: FakeChain) -> None:
    index = LogIndex(chain)
    assert chain.unpacked == [] and index.size == 0
    before = chain.naive(FIRST, FIRST + 20, 1)
    for _ in range(2):
        assert found(index, FIRST, FIRST + 20, 1) == before
    assert len(chain.unpacked) == len({number for number, _ in before})
    chain.unpacked.clear()
    index.update(change([], [chain.grow(1, 1)]))
    assert len(chain.unpacked) == 1
    assert len(found(index, FIRST, FIRST + 21, 1)) == len(before) + 2
    assert len(chain.unpacked) == 1


@pytest.mark.parametrize("reported", [True, False])
def test_it_spans_pages(reported: bool) -> None:
    chain = FakeChain()
    index = LogIndex(chain)
    for number in range(3 * PAGE_BLOCKS):
        block = chain.grow(number % 4)
        if reported:
            index.update(change([], [block]))
    if not reported:
        index = LogIndex(chain)
    assert len(index) == 3 * PAGE_BLOCKS + 1
    edges = [(FIRST, FIRST + 3 * PAGE_BLOCKS), (FIRST + PAGE_BLOCKS - 1, FIRST + PAGE_BLOCKS)]
    for kind in range(4):
        for first, last in edges:
            assert found(index, first, last, kind) == chain.naive(first, last, kind)


@pytest.mark.parametrize("kept", [1, PAGE_BLOCKS - 1, PAGE_BLOCKS, PAGE_BLOCKS + 9])
def test_a_deep_reorganisation_leaves_the_index_in_step(kept: int) -> None:
    chain = FakeChain()
    for number in range(2 * PAGE_BLOCKS + 20):
        chain.grow(number % 4)
    index = LogIndex(chain)
    removed = chain.shrink(kept)
    for number in range(2 * PAGE_BLOCKS):
        chain.grow(number % 3, salt=5)
    index.update(change(removed, chain.blocks[kept:]))
    assert len(index) == len(chain.blocks)
    for kind in range(4):
        assert found(index, FIRST, FIRST + 9_999, kind) == chain.naive(FIRST, FIRST + 9_999, kind)


def test_packed_logs_beyond_the_limit_go_and_are_read_again() -> None:
    chain = FakeChain()
    item = LogIndex(chain).of_block(chain.grow(0, 1, 2)).size
    index = LogIndex(chain, LogLimits(size=10 * item))
    for _ in range(50):
        index.update(change([], [chain.grow(0, 1, 2)]))
        assert index.size <= 10 * item
    chain.unpacked.clear()
    found(index, FIRST + 45, FIRST + 51, 0)
    assert chain.unpacked == []  # the newest blocks are in memory
    assert found(index, FIRST, FIRST + 51, 0) == chain.naive(FIRST, FIRST + 51, 0)
    assert chain.unpacked != []
    assert index.size <= 10 * item


@pytest.mark.parametrize("reported", [True, False])
def test_blooms_beyond_the_limit_are_read_from_the_headers(reported: bool) -> None:
    chain = FakeChain()
    limits = LogLimits(blocks=PAGE_BLOCKS)
    index = LogIndex(chain, limits)
    for number in range(4 * PAGE_BLOCKS):
        block = chain.grow(number % 4)
        if reported:
            index.update(change([], [block]))
    if not reported:
        index.update()
    assert PAGE_BLOCKS <= len(index) < 2 * PAGE_BLOCKS
    assert found(index, FIRST, FIRST + 9_999, 3) == chain.naive(FIRST, FIRST + 9_999, 3)


def test_a_pre_confirmed_block_is_packed_once() -> None:
    index = LogIndex(FakeChain())
    logs = (Log(ADDRESSES[1], (), b"soon"),)
    pending = SimpleNamespace(
        header=Header(number=8), transactions=(TRANSACTION,), receipts=(receipt(logs),)
    )
    packed = index.of_pending(pending)
    assert packed.select(LogQuery()) == [(0, logs[0])]
    assert index.of_pending(pending) is packed
    other = SimpleNamespace(header=Header(number=8), transactions=(), receipts=())
    assert index.of_pending(other).select(LogQuery()) == []


steps = st.lists(
    st.tuples(
        st.one_of(st.integers(0, 3), st.integers(0, 300)),
        st.lists(st.lists(st.integers(0, 3), max_size=3), max_size=3),
        st.booleans(),
    ),
    max_size=25,
)


@settings(max_examples=60)
@given(st.integers(0, 300), st.sampled_from([LIMITS, LogLimits(blocks=1, size=900)]), steps)
def test_it_agrees_with_the_receipts_through_any_changes(
    length: int, limits: LogLimits, changes: list[tuple[int, list[list[int]], bool]]
) -> None:
    chain = FakeChain()
    for number in range(length):
        chain.grow(number % 5 % 4)
    index = LogIndex(chain, limits)
    for salt, (remove, blocks, reported) in enumerate(changes, 1):
        kept = max(1, len(chain.blocks) - remove)
        removed = chain.shrink(kept)
        for kinds in blocks:
            chain.grow(*kinds, salt=salt)
        if reported:
            index.update(change(removed, chain.blocks[kept:]))
        for kind in (salt % 4, 3):
            everything = chain.naive(FIRST, FIRST + 999, kind)
            assert found(index, FIRST, FIRST + 999, kind) == everything


def test_it_may_be_read_while_it_grows_and_is_reorganised() -> None:
    """Readers find the log of every block up to ``steady`` while later blocks come and go."""
    chain = FakeChain()
    for _ in range(PAGE_BLOCKS + 40):
        chain.grow(0)
    steady = FIRST + PAGE_BLOCKS
    index = LogIndex(chain, LogLimits(size=40_000))
    done = threading.Event()
    faults: list[str] = []

    def read() -> None:
        while not done.is_set():
            logs = found(index, FIRST, steady, 0)
            if [number for number, _ in logs] != list(range(FIRST + 1, steady + 1)):
                faults.append(f"{len(logs)} of {steady - FIRST}")

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for salt in range(300):
        removed = chain.shrink(len(chain.blocks) - 3) if salt % 5 == 0 else []
        added = [chain.grow(0, salt=salt) for _ in range(len(removed) + 2)]
        index.update(change(removed, added))
    done.set()
    for reader in readers:
        reader.join()
    assert faults == []
    assert found(index, FIRST, FIRST + 9_999, 0) == chain.naive(FIRST, FIRST + 9_999, 0)
