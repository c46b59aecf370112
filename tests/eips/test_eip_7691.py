"""EIP-7691: Blob throughput increase.

A block has at most 9 blobs instead of 6, and a target of 6 instead of 3. The blob fee changes
accordingly.
"""

import pytest

from fastevm import blob_base_fee
from fastevm.core.spec.schedule import schedule_for
from fastevm.errors import InvalidBlock

from .support import (
    BLOB_GAS,
    before_and_after,
    blob_payment,
    build,
    chain_across,
    child_header,
    grow,
    header_with_blobs,
)

BEFORE, AFTER = before_and_after(7691)


def test_a_block_holds_more_blobs():
    chain = chain_across(7691)
    with pytest.raises(InvalidBlock, match="too many blobs"):
        build(chain, transactions=[blob_payment(7)])
    assert grow(chain, transactions=[blob_payment(6)]).header.blob_gas_used == 6 * BLOB_GAS
    with pytest.raises(InvalidBlock, match="too many blobs"):
        build(chain, transactions=[blob_payment(10, nonce=1)])
    assert grow(chain, transactions=[blob_payment(9, nonce=1)]).header.blob_gas_used == 9 * BLOB_GAS


@pytest.mark.parametrize(("used", "before", "after"), [(3, 100, 97), (6, 103, 100), (9, 106, 103)])
def test_the_target_is_twice_as_high(used, before, after):
    parent = header_with_blobs(100, used, 10**9)
    found = [child_header(fork, parent).excess_blob_gas / BLOB_GAS for fork in (BEFORE, AFTER)]
    assert found == [before, after]


def test_the_fee_rises_by_less_than_it_falls():
    """Blob fees change by 8 % and 15 % instead of 1/8.

    Before the fork, a full block raised the fee by 1/8 and an empty block lowered it by 1/8. Now a
    full block raises the fee by 8 % and an empty block lowers it by 15 %.
    """

    def moved(fork, blobs):
        """Returns the factor by which ``blobs`` blobs above or below the target change the fee."""
        excess, schedule = 1_000 * BLOB_GAS, schedule_for(fork)
        return blob_base_fee(excess + blobs * BLOB_GAS, schedule) / blob_base_fee(excess, schedule)

    assert moved(BEFORE, 3) == pytest.approx(1.125, abs=0.001)
    assert moved(BEFORE, -3) == pytest.approx(1 / 1.125, abs=0.001)
    assert moved(AFTER, 3) == pytest.approx(1.082, abs=0.001)
    assert moved(AFTER, -6) == pytest.approx(0.855, abs=0.001)
