"""EIP-7623: data has a least price."""

from fastevm.spec.schedule import schedule_for

from .support import introduced, parameter


def test_came_with_prague():
    assert introduced(7623) == "Prague"
    assert parameter("tx_floor_token_cost") == {"Frontier": 0, "Prague": 10}


def test_a_token_is_a_zero_byte():
    prague = schedule_for("prague").parameters
    tokens = prague["tokens_per_nonzero_byte"]
    assert tokens * prague["tx_zero_byte_cost"] == prague["tx_nonzero_byte_cost"]
    assert tokens * prague["tx_floor_token_cost"] == 40
