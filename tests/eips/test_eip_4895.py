"""EIP-4895: Beacon chain push withdrawals as operations.

A block has a list of withdrawals. Their amounts in gwei are credited without a transaction.
"""

from fastevm.core.execution.types import EMPTY_ROOT, Withdrawal
from fastevm.core.primitives.replace import replace

from .support import OTHER, build, chain_across, grow, refused_block

PAID = [Withdrawal(0, 7, OTHER, 3), Withdrawal(1, 8, OTHER, 4)]


def test_withdrawals_are_credited_in_gwei():
    chain = chain_across(4895)
    before = grow(chain, withdrawals=PAID)
    assert before.withdrawals is None
    assert chain.layer_of(before.hash).balance(OTHER) == 0
    after = grow(chain, withdrawals=PAID)
    assert after.withdrawals == tuple(PAID)
    assert chain.layer_of(after.hash).balance(OTHER) == 7 * 10**9
    assert after.header.gas_used == 0


def test_the_header_holds_the_root_of_the_list():
    chain = chain_across(4895)
    roots = [grow(chain, withdrawals=paid).header.withdrawals_root for paid in ([], [], PAID)]
    assert roots[:2] == [None, EMPTY_ROOT]
    assert roots[2] not in roots[:2]


def test_the_list_must_be_there_from_then_on_and_not_before():
    chain = chain_across(4895)
    block = build(chain)[0]
    assert refused_block(chain, replace(block, withdrawals=())) == "withdrawals"
    chain.add(block)
    block = build(chain)[0]
    assert refused_block(chain, replace(block, withdrawals=None)) == "withdrawals"
    chain.add(block)
