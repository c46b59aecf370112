"""The blooms of the canonical chain: every scan finds what reading all headers would find."""

import threading
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastevm.chain import LogIndex
from fastevm.chain.chain import HeadChange
from fastevm.primitives.bloom import bloom_of
from fastevm.types import Block, Header, Log

ADDRESSES = [bytes([n]) * 20 for n in range(1, 5)]
FIRST = 7  # a chain may begin anywhere


def block(number: int, parent: bytes, kinds: tuple[int, ...], salt: int = 0) -> Block:
    """Return a block with a log of each of the kinds (an index into the addresses)."""
    bloom = bloom_of([Log(ADDRESSES[kind], (), b"") for kind in kinds])
    extra = salt.to_bytes(4, "big")
    return Block(Header(number=number, parent_hash=parent, logs_bloom=bloom, extra_data=extra))


@dataclass
class FakeChain:
    """Canonical blocks only; tells nobody of changes."""

    blocks: list[Block] = field(default_factory=lambda: [block(FIRST, bytes(32), ())])

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

    def grow(self, *kinds: int, salt: int = 0) -> None:
        self.blocks.append(block(self.head.number + 1, self.head.hash, kinds, salt))

    def naive(self, first: int, last: int, kind: int) -> list[int]:
        wanted = bloom_of([Log(ADDRESSES[kind], (), b"")])
        mask = int.from_bytes(wanted, "big")
        return [
            found.number
            for found in self.blocks
            if first <= found.number <= last
            and int.from_bytes(found.header.logs_bloom, "big") & mask == mask
        ]


def change(removed: list[Block], added: list[Block]) -> HeadChange:
    return HeadChange(tuple(removed), tuple(added))


@pytest.fixture
def chain() -> FakeChain:
    chain = FakeChain()
    for number in range(20):
        chain.grow(*([number % 4] if number % 3 else []), salt=number)
    return chain


def test_a_scan_finds_the_blocks_that_may_hold_a_log(chain: FakeChain) -> None:
    index = LogIndex(chain)
    assert len(index) == 21
    for kind in range(4):
        wanted = [[ADDRESSES[kind]]]
        assert index.scan(FIRST, FIRST + 20, wanted) == chain.naive(FIRST, FIRST + 20, kind)
        assert index.scan(FIRST + 5, FIRST + 9, wanted) == chain.naive(FIRST + 5, FIRST + 9, kind)


def test_no_constraint_takes_every_block(chain: FakeChain) -> None:
    everything = list(range(FIRST, FIRST + 21))
    assert LogIndex(chain).scan(0, 10**9, []) == everything
    assert LogIndex(chain).scan(0, 10**9, [[], []]) == everything


@pytest.mark.parametrize(("first", "last"), [(0, 6), (28, 40), (10, 9), (10**9, 10**9 + 1)])
def test_outside_the_chain_there_is_nothing(chain: FakeChain, first: int, last: int) -> None:
    assert LogIndex(chain).scan(first, last, []) == []


def test_an_index_that_is_behind_reads_the_rest_from_the_headers(chain: FakeChain) -> None:
    index = LogIndex(chain)
    for _ in range(3):
        chain.grow(1)
    assert len(index) == 21
    assert index.scan(FIRST, FIRST + 23, [[ADDRESSES[1]]]) == chain.naive(FIRST, FIRST + 23, 1)


def test_an_index_of_another_branch_reads_everything_from_the_headers(chain: FakeChain) -> None:
    index = LogIndex(chain)
    removed = chain.blocks[15:][::-1]
    del chain.blocks[15:]
    for _ in range(9):
        chain.grow(2, salt=99)
    wanted = [[ADDRESSES[2]]]
    assert index.scan(FIRST, FIRST + 30, wanted) == chain.naive(FIRST, FIRST + 30, 2)
    index.update(change(removed, chain.blocks[15:]))
    assert len(index) == len(chain.blocks)
    assert index.scan(FIRST, FIRST + 30, wanted) == chain.naive(FIRST, FIRST + 30, 2)


def test_it_grows_beyond_its_first_room() -> None:
    chain = FakeChain()
    index = LogIndex(chain)
    for number in range(2_500):
        chain.grow(number % 4)
        index.update(change([], [chain.head]))
    assert len(index) == 2_501
    for kind in range(4):
        found = index.scan(FIRST, FIRST + 2_500, [[ADDRESSES[kind]]])
        assert found == chain.naive(FIRST, FIRST + 2_500, kind)


steps = st.lists(
    st.tuples(st.integers(0, 3), st.lists(st.integers(0, 3), max_size=3), st.booleans()),
    max_size=25,
)


@given(steps)
def test_it_agrees_with_the_headers_through_any_changes(
    changes: list[tuple[int, list[int], bool]],
) -> None:
    chain = FakeChain()
    index = LogIndex(chain)
    for salt, (remove, kinds, told) in enumerate(changes):
        kept = max(1, len(chain.blocks) - remove)
        removed = chain.blocks[kept:][::-1]
        del chain.blocks[kept:]
        for kind in kinds:
            chain.grow(kind, salt=salt)
        if told:
            index.update(change(removed, chain.blocks[kept:]))
        for kind in range(4):
            found = index.scan(FIRST, FIRST + 100, [[ADDRESSES[kind]]])
            assert found == chain.naive(FIRST, FIRST + 100, kind)


def test_it_may_be_scanned_while_it_grows() -> None:
    chain = FakeChain()
    index = LogIndex(chain)
    done = threading.Event()
    faults: list[str] = []

    def scan() -> None:
        while not done.is_set():
            head = chain.head.number
            found = index.scan(FIRST, head, [[ADDRESSES[0]]])
            if found != list(range(FIRST + 1, head + 1)):
                faults.append(f"{len(found)} of {head - FIRST}")

    readers = [threading.Thread(target=scan) for _ in range(2)]
    for reader in readers:
        reader.start()
    for _ in range(3_000):
        chain.grow(0)
        index.update()
    done.set()
    for reader in readers:
        reader.join()
    assert faults == []
