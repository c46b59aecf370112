"""Tests that one thread and several threads compute the same state root."""

from random import Random

import pytest

from fastevm.core.state.layer import Layer


def accounts(random, count, slots):
    """Returns accounts with distinct addresses. Some of them have storage."""
    return {
        random.randbytes(20): {
            "balance": random.randrange(1, 10**18),
            "storage": {random.randrange(2**256): 1 for _ in range(random.choice([0, 0, slots]))},
        }
        for _ in range(count)
    }


@pytest.mark.parametrize(("count", "slots"), [(1, 1), (20, 2), (700, 3), (3_000, 4), (3, 2_000)])
@pytest.mark.parametrize("threads", [2, 5])
def test_roots_on_threads_are_those_of_one(count, slots, threads):
    first = accounts(Random(count), count, slots)
    later = accounts(Random(-count), count, slots)
    later |= {address: {"nonce": 7, "storage": {5: 6}} for address in list(first)[::3]}
    alone, together = Layer.of(first), Layer.of(first)
    assert together.state_root(threads=threads) == alone.state_root()
    gone = list(first)[::5]
    alone = alone.with_accounts(later).without_accounts(gone)
    together = together.with_accounts(later).without_accounts(gone)
    root = together.state_root(threads=threads)
    assert root == alone.state_root()
    assert together.state_root() == root


def test_many_layers_are_hashed_together():
    random = Random(5)
    item, other = Layer.empty(), Layer.empty()
    for _ in range(30):
        changed = accounts(random, 100, 3)
        item, other = item.with_accounts(changed), other.with_accounts(changed)
    assert item.state_root(threads=3) == other.state_root()


@pytest.mark.parametrize("threads", [0, -1, 65])
def test_the_number_of_threads_is_checked(threads):
    with pytest.raises(ValueError, match="threads is a number from 1 to 64"):
        Layer.empty().state_root(threads=threads)
