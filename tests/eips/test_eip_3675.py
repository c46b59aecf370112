"""EIP-3675: Upgrade consensus to proof of stake.

After the terminal total difficulty, blocks have no difficulty, no uncles and no reward.
"""

from fastevm.core.spec.activation import MAINNET

from .support import (
    ETHER,
    build,
    chain_across,
    grow,
    refused_block,
    rewards,
    with_header,
)


def test_the_difficulty_ends():
    chain = chain_across(3675)
    before, after = grow(chain).header, grow(chain).header
    assert before.difficulty >= 0x20000
    assert after.difficulty == 0


def test_the_reward_ends():
    assert rewards(chain_across(3675), 3) == [2 * ETHER, 0, 0]


def test_fields_of_the_proof_of_work_are_refused():
    chain = chain_across(3675)
    assert refused_block(chain, with_header(build(chain)[0], difficulty=0)) == "difficulty"
    chain.add(with_header(build(chain)[0], nonce=b"\x01" * 8))
    block = build(chain)[0]
    assert refused_block(chain, with_header(block, difficulty=0x20000)) == "difficulty"
    assert refused_block(chain, with_header(block, nonce=b"\x01" * 8)) == "nonce"


def test_uncles_end():
    # the total difficulty does not rise, so block 2 is still under proof of work
    chain = chain_across(3675, difficulty="0x0")
    grow(chain, timestamp=1)
    uncle = build(chain, parent=chain.genesis, extra_data=b"uncle", timestamp=1)[0].header
    nephew = build(chain, ommers=[uncle], timestamp=2)[0]
    assert nephew.header.difficulty > 0
    chain.add(nephew)
    merged = build(chain, ommers=[uncle], timestamp=3)[0]
    assert merged.header.difficulty == 0
    assert refused_block(chain, merged) == "ommers_hash"


def test_mainnet_reached_it_by_total_difficulty_and_not_by_number():
    assert MAINNET.terminal_total_difficulty == 58_750 * 10**18
    for after_merge in (False, True):
        schedule = MAINNET.at(15_537_394, 0, after_merge=after_merge)
        assert schedule.parameters["proof_of_stake"] == after_merge
