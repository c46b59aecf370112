"""Tests valid and invalid uncles, and their rewards."""

import pytest

from fastevm.chain.chain import Chain
from fastevm.core.primitives.replace import replace
from fastevm.errors import InvalidBlock

from .blocks import ETHER, build, grow, new_chain

MINER = b"\x33" * 20
UNCLE_MINER = b"\x44" * 20


def uncle_of(chain, parent, name=b"u"):
    return build(chain, parent=parent, extra_data=name, coinbase=UNCLE_MINER)[0].header


def refused(chain, ommers):
    with pytest.raises(InvalidBlock) as caught:
        chain.add(build(chain, ommers=ommers)[0])
    return caught.value


@pytest.mark.parametrize(
    ("fork", "reward"), [("Frontier", 5), ("Byzantium", 3), ("Constantinople", 2), ("London", 2)]
)
def test_a_miner_is_paid_the_reward_of_the_fork(fork, reward):
    chain = new_chain(fork)
    grow(chain, coinbase=MINER)
    assert chain.layer_of(chain.head.hash).balance(MINER) == reward * ETHER


def test_nobody_is_paid_after_the_merge():
    chain = new_chain("Paris")
    grow(chain, coinbase=MINER)
    assert chain.layer_of(chain.head.hash).account(MINER) is None


@pytest.mark.parametrize("age", [1, 2, 6])
def test_an_uncle_is_paid_by_its_age_and_the_nephew_a_32nd(age):
    chain = new_chain("London")
    grow(chain, 8)
    uncle = uncle_of(chain, chain.block_by_number(8 - age))
    chain.add(build(chain, ommers=[uncle], coinbase=MINER)[0])
    layer = chain.layer_of(chain.head.hash)
    assert layer.balance(UNCLE_MINER) == 2 * ETHER * (8 - age) // 8
    assert layer.balance(MINER) == 2 * ETHER + 2 * ETHER // 32


def test_an_uncle_may_be_six_generations_old_and_no_older():
    chain = new_chain("London")
    grow(chain, 9)
    error = refused(chain, [uncle_of(chain, chain.block_by_number(2))])
    assert error.field == "ommers[0].parent_hash"


def test_a_sibling_is_no_uncle():
    chain = new_chain("London")
    grow(chain, 2)
    error = refused(chain, [uncle_of(chain, chain.head)])
    assert error.field == "ommers[0].parent_hash"


def test_an_ancestor_is_no_uncle():
    chain = new_chain("London")
    grow(chain, 3)
    assert refused(chain, [chain.block_by_number(2).header]).expected == "no ancestor of the block"


def test_an_uncle_is_included_once():
    chain = new_chain("London")
    grow(chain, 3)
    uncle = uncle_of(chain, chain.block_by_number(1))
    assert refused(chain, [uncle, uncle]).field == "ommers[1]"
    chain.add(build(chain, ommers=[uncle])[0])
    assert refused(chain, [uncle]).field == "ommers[0]"


def test_a_block_has_two_uncles_at_most():
    chain = new_chain("London")
    grow(chain, 3)
    uncles = [uncle_of(chain, chain.block_by_number(1), name) for name in (b"a", b"b", b"c")]
    assert refused(chain, uncles).field == "ommers"
    chain.add(build(chain, ommers=uncles[:2])[0])
    assert len(chain.head.ommers) == 2


def test_an_uncle_s_header_must_be_valid():
    chain = new_chain("London")
    grow(chain, 3)
    uncle = replace(uncle_of(chain, chain.block_by_number(1)), gas_limit=1)
    error = refused(chain, [uncle])
    assert (error.number, error.field) == (4, "ommers[0].gas_limit")


def test_uncles_raise_the_difficulty_of_the_next_block():
    chain = new_chain("London")
    grow(chain, 3)
    childless = build(chain, extra_data=b"p")[0]
    nephew = build(chain, ommers=[uncle_of(chain, chain.block_by_number(1))])[0]
    chain.add(childless)
    chain.add(nephew)
    after = [build(chain, parent=block)[0].header.difficulty for block in (childless, nephew)]
    assert after[0] < after[1]


def test_seals_are_looked_at_where_that_is_asked_for():
    for fork, sealed in (("London", True), ("Paris", False)):
        lenient = new_chain(fork)
        genesis = lenient.genesis
        strict = Chain(lenient.config, genesis, lenient.layer_of(genesis.hash), check_seals=True)
        block = build(lenient)[0]
        lenient.add(block)
        if sealed:
            with pytest.raises(InvalidBlock, match="mix_hash"):
                strict.add(block)
        else:
            strict.add(block)
