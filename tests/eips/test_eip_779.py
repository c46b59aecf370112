"""EIP-779: the DAO fork moves balances and changes no rule."""

from fastevm.spec.activation import MAINNET
from fastevm.spec.forks import DAO, HOMESTEAD, same_rules

from .support import introduced


def test_is_a_mark_in_the_history_of_mainnet():
    assert introduced(779) == "DAO"
    assert MAINNET.dao_block == 1_920_000
    assert same_rules(DAO, HOMESTEAD)
