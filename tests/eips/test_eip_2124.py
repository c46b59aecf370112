"""EIP-2124: the fork identifier."""

from fastevm.spec.activation import MAINNET
from fastevm.spec.fork_id import fork_id

GENESIS = bytes.fromhex("d4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3")


def test_the_next_fork_is_announced_until_it_is_there():
    before = fork_id(MAINNET, GENESIS, number=1_149_999, timestamp=0)
    at = fork_id(MAINNET, GENESIS, number=1_150_000, timestamp=0)
    assert before == fork_id(MAINNET, GENESIS, number=0, timestamp=0)
    assert (before.checksum.hex(), before.next) == ("fc64ec04", 1_150_000)
    assert (at.checksum.hex(), at.next) == ("97c2c34c", 1_920_000)


def test_forks_that_share_a_block_count_once():
    assert MAINNET.fork_blocks.count(7_280_000) == 1
