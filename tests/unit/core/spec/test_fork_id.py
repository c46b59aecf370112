"""Tests fork identifiers against the published identifiers of mainnet."""

import pytest

from fastevm.core.spec.activation import MAINNET, Activations
from fastevm.core.spec.fork_id import ForkId, fork_id

GENESIS = bytes.fromhex("d4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3")


@pytest.mark.parametrize(
    ("number", "timestamp", "checksum", "following"),
    [
        # EIP-2124, test cases
        (0, 0, "fc64ec04", 1_150_000),
        (1_149_999, 0, "fc64ec04", 1_150_000),
        (1_150_000, 0, "97c2c34c", 1_920_000),
        (1_919_999, 0, "97c2c34c", 1_920_000),
        (1_920_000, 0, "91d1f948", 2_463_000),
        (2_463_000, 0, "7a64da13", 2_675_000),
        (2_675_000, 0, "3edd5b10", 4_370_000),
        (4_370_000, 0, "a00bc324", 7_280_000),
        (7_280_000, 0, "668db0af", 9_069_000),
        (9_069_000, 0, "879d6e30", 9_200_000),
        (9_200_000, 0, "e029e991", 12_244_000),
        (12_244_000, 0, "0eb440f6", 12_965_000),
        (12_965_000, 0, "b715077d", 13_773_000),
        (13_773_000, 0, "20c327fc", 15_050_000),
        (15_050_000, 0, "f0afd0e3", 1_681_338_455),
        (17_034_870, 1_681_338_455, "dce96c2d", 1_710_338_135),
        (19_426_587, 1_710_338_135, "9f3d2254", 1_746_612_311),
        (22_431_084, 1_746_612_311, "c376cf8b", 1_764_798_551),
        (30_000_000, 1_764_798_551, "5167e2a6", 1_765_290_071),
        (30_000_000, 1_765_290_071, "cba2a1c0", 1_767_747_671),
        (30_000_000, 1_767_747_671, "07c9462e", 0),
    ],
)
def test_mainnet(number, timestamp, checksum, following):
    found = fork_id(MAINNET, GENESIS, number=number, timestamp=timestamp)
    assert found == ForkId(bytes.fromhex(checksum), following)


def test_forks_of_the_genesis_block_are_part_of_it():
    chain = Activations.from_genesis_config(
        {"terminalTotalDifficulty": 0, "shanghaiTime": 50, "cancunTime": 100, "pragueTime": 200}
    )
    found = fork_id(chain, bytes(32), number=0, timestamp=100, genesis_timestamp=100)
    assert found == ForkId(bytes.fromhex("190a55ad"), 200)  # CRC-32 of the genesis hash alone


def test_the_netsplit_block_counts_though_no_rule_changes_there():
    chain = Activations(merge_block=0, terminal_total_difficulty=0, netsplit_block=36)
    assert fork_id(chain, bytes(32), number=35, timestamp=0).next == 36
    assert fork_id(chain, bytes(32), number=36, timestamp=0).next == 0
