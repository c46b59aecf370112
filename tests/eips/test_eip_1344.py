"""EIP-1344: ChainID opcode.

A contract can read the id of its chain.
"""

import pytest

from .support import INVALID_OPCODE, before_and_after, cost, run, top

BEFORE, AFTER = before_and_after(1344)


@pytest.mark.parametrize("chain_id", [1, 61, 2**64 - 1])
def test_the_opcode_gives_the_chain_id(chain_id):
    assert run(BEFORE, "CHAINID", chain_id=chain_id).error == INVALID_OPCODE
    assert top(AFTER, "CHAINID", chain_id=chain_id) == chain_id


def test_it_costs_what_the_other_block_values_cost():
    assert cost(AFTER, "", "CHAINID") == cost(AFTER, "", "NUMBER") == 2
