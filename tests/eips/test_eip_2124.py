"""EIP-2124: Fork identifier for chain compatibility checks.

A node announces a checksum of its past forks, and its next fork.
"""

import pytest

from fastevm import fork_id
from fastevm.core.spec.activation import MAINNET, Activations
from fastevm.core.spec.forks import HOMESTEAD

GENESIS = bytes.fromhex("d4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3")


@pytest.mark.parametrize(
    ("fork_block", "before", "after", "following"),
    [
        # From the test cases of the EIP.
        (1_150_000, "fc64ec04", "97c2c34c", 1_920_000),
        (1_920_000, "97c2c34c", "91d1f948", 2_463_000),
        (7_280_000, "a00bc324", "668db0af", 9_069_000),
    ],
)
def test_a_fork_changes_the_checksum_and_is_announced_until_then(
    fork_block, before, after, following
):
    last = fork_id(MAINNET, GENESIS, number=fork_block - 1, timestamp=0)
    first = fork_id(MAINNET, GENESIS, number=fork_block, timestamp=0)
    assert (last.checksum.hex(), last.next) == (before, fork_block)
    assert (first.checksum.hex(), first.next) == (after, following)


def test_nothing_changes_between_forks():
    at = [fork_id(MAINNET, GENESIS, number=number, timestamp=0) for number in (0, 7, 1_149_999)]
    assert at[0] == at[1] == at[2]


def test_chains_that_fork_at_different_blocks_agree_until_the_first_of_them():
    early, late = (Activations([(number, HOMESTEAD)]) for number in (10, 20))
    before, after = (
        [fork_id(chain, GENESIS, number=number, timestamp=0) for chain in (early, late)]
        for number in (9, 10)
    )
    assert before[0].checksum == before[1].checksum
    assert [found.next for found in before] == [10, 20]
    assert after[0].checksum != after[1].checksum


def test_another_genesis_block_gives_another_checksum():
    ours, theirs = (
        fork_id(MAINNET, genesis, number=0, timestamp=0) for genesis in (GENESIS, bytes(32))
    )
    assert ours.checksum != theirs.checksum
    assert ours.next == theirs.next
