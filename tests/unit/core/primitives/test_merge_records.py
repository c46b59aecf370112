"""Tests that merging sorted records gives the result of sorting all records."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastevm.core.primitives.merge_records import RECORD_SIZE, merge_records

runs = st.lists(st.binary(min_size=RECORD_SIZE, max_size=RECORD_SIZE), max_size=40).map(sorted)
like = st.lists(st.sampled_from([bytes(16), bytes(15) + b"\1", b"\xff" * 16]), max_size=8)


@given(runs | like.map(sorted), runs | like.map(sorted))
def test_two_runs_become_one_as_far_as_both_reach(left, right):
    merged, used_left, used_right = merge_records(b"".join(left), b"".join(right))
    assert len(merged) == used_left + used_right
    assert used_left == RECORD_SIZE * len(left) or used_right == RECORD_SIZE * len(right)
    rest = b"".join(left)[used_left:] + b"".join(right)[used_right:]
    assert merged + rest == b"".join(sorted(left + right))


def test_pieces_of_records_are_refused():
    with pytest.raises(ValueError, match="16 bytes"):
        merge_records(bytes(RECORD_SIZE), bytes(RECORD_SIZE - 1))
