"""Tests the balance moves of the DAO fork."""

from fastevm.chain.dao_fork import DRAINED_ACCOUNTS, REFUND_CONTRACT, apply_dao_fork
from fastevm.core.state.layer import Layer


def test_all_ether_of_the_list_goes_to_the_refund_contract():
    first, last, other = DRAINED_ACCOUNTS[0], DRAINED_ACCOUNTS[-1], b"\x01" * 20
    layer = apply_dao_fork(
        Layer.of(
            {
                first: {"balance": 5, "nonce": 1},
                last: {"balance": 7},
                other: {"balance": 11},
                REFUND_CONTRACT: {"balance": 13, "code": b"\x00"},
            }
        )
    )
    assert layer.balance(REFUND_CONTRACT) == 25
    assert layer.code(REFUND_CONTRACT) == b"\x00"
    assert (layer.balance(first), layer.nonce(first), layer.balance(last)) == (0, 1, 0)
    assert layer.balance(other) == 11


def test_the_list_holds_116_accounts_and_not_the_refund_contract():
    assert len(set(DRAINED_ACCOUNTS)) == 116
    assert REFUND_CONTRACT not in DRAINED_ACCOUNTS
