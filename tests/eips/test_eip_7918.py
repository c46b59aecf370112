"""EIP-7918: Blob base fee bounded by execution cost.

While a blob costs less than 8,192 gas of execution, blocks below the target do not lower the blob
fee, and blocks above the target raise it by less.
"""

from .support import BLOB_GAS, before_and_after, child_header, header_refusal, header_with_blobs

BEFORE, AFTER = before_and_after(7918)


def excess(fork, base_fee, used):
    """Returns the excess blobs that a child header must have.

    The parent has 100 excess blobs, at which blob gas costs 13 wei.
    """
    parent = header_with_blobs(100, used, base_fee)
    return child_header(fork, parent).excess_blob_gas / BLOB_GAS


def test_a_cheap_blob_fee_does_not_fall():
    for used, before, after in ((0, 94, 100), (3, 97, 101), (6, 100, 102), (9, 103, 103)):
        assert excess(BEFORE, 10**9, used) == before
        assert excess(AFTER, 10**9, used) == after


def test_where_blobs_cost_more_than_execution_nothing_changes():
    for used, expected in ((0, 94), (3, 97), (6, 100), (9, 103)):
        assert excess(BEFORE, 7, used) == excess(AFTER, 7, used) == expected


def test_the_bound_is_8192_gas_of_execution_for_a_blob():
    """13 wei for each of 131,072 blob gas equals 208 wei for each of 8,192 gas."""
    assert [excess(AFTER, base_fee, 0) for base_fee in (208, 209)] == [94, 100]
    assert [excess(BEFORE, base_fee, 0) for base_fee in (208, 209)] == [94, 94]


def test_each_fork_refuses_the_header_of_the_other():
    parent = header_with_blobs(100, 0, 10**9)
    header = child_header(AFTER, parent)
    assert header_refusal(AFTER, header, parent) is None
    assert header_refusal(BEFORE, header, parent) == "excess_blob_gas"
