"""EIP-100: Difficulty adjustment to the mean block time including uncles.

The difficulty falls by a step for every nine seconds of block time. If the parent has uncles, it is
one step higher.
"""

import pytest

from fastevm.core.execution.types import Header
from fastevm.core.primitives.replace import replace

from .support import before_and_after, child_header, header_refusal

BEFORE, AFTER = before_and_after(100)
PARENT = Header(number=100, difficulty=2048 * 1_000, gas_limit=30_000_000)
NEPHEW = replace(PARENT, ommers_hash=b"\x01" * 32)


def steps(fork, parent, seconds):
    """Returns by how many 2048ths of the parent's difficulty the child's difficulty differs."""
    header = child_header(fork, parent, seconds=seconds)
    assert header_refusal(fork, header, parent) is None
    return (header.difficulty - parent.difficulty) / 1_000


@pytest.mark.parametrize(("seconds", "before", "after"), [(1, 1, 2), (9, 1, 1), (18, 0, 0)])
def test_uncles_of_the_parent_raise_the_difficulty(seconds, before, after):
    assert steps(BEFORE, NEPHEW, seconds) == before
    assert steps(AFTER, NEPHEW, seconds) == after


@pytest.mark.parametrize(("seconds", "before", "after"), [(8, 1, 1), (9, 1, 0), (18, 0, -1)])
def test_a_step_takes_nine_seconds_instead_of_ten(seconds, before, after):
    assert steps(BEFORE, PARENT, seconds) == before
    assert steps(AFTER, PARENT, seconds) == after


def test_each_fork_refuses_the_difficulty_of_the_other():
    header = child_header(AFTER, NEPHEW)
    assert header_refusal(AFTER, header, NEPHEW) is None
    assert header_refusal(BEFORE, header, NEPHEW) == "difficulty"
