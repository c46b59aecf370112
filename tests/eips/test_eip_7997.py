"""EIP-7997: Deterministic factory contract.

The EIP concerns genesis files: it changes no execution rule, and no client deploys the contract at
the fork.
"""

from fastevm.core.spec import amsterdam

from .support import before_and_after, chain_across, grow

BEFORE, AFTER = before_and_after(7997)
FACTORY = bytes.fromhex("4e59b44847b379578588920ca78fbf26c0b4956c")


def test_the_fork_neither_demands_nor_makes_the_contract():
    chain = chain_across(7997)
    grow(chain)
    block = grow(chain)
    assert chain.layer_of(block.hash).code(FACTORY) == b""


def test_it_sets_no_value():
    assert not amsterdam.EIP_7997.parameters
    assert not amsterdam.EIP_7997.contracts
