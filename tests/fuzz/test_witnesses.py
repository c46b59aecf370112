"""Verifies a sample of mutated witnesses of real blocks.

``python -m tests.fuzz.witnesses`` mutates all witnesses.
"""

from __future__ import annotations

import pytest

from tests.shared_data import REAL_BLOCKS

from .witnesses import KINDS, Subject, run, subjects

# Most trie nodes of a witness. Only one real block, with one transaction, has so small a witness.
SMALLEST = 100


@pytest.fixture(scope="module")
def smallest() -> list[Subject]:
    assert REAL_BLOCKS.required
    return list(subjects(SMALLEST))


def test_mutated_witnesses_of_a_real_block_are_refused_with_words(smallest: list[Subject]) -> None:
    assert [len(item.block.transactions) for item in smallest] == [1]
    refused = run(smallest, 300, seed=7)
    assert refused.total() == 300
    assert set(refused) == set(KINDS)
