"""EIP-2028: data of a transaction becomes cheaper."""

from .support import introduced, parameter


def test_a_nonzero_byte_costs_16_since_istanbul():
    assert introduced(2028) == "Istanbul"
    assert parameter("tx_nonzero_byte_cost") == {"Frontier": 68, "Istanbul": 16}
    assert parameter("tx_zero_byte_cost") == {"Frontier": 4}
