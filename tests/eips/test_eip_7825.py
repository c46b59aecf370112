"""EIP-7825: a transaction's gas limit is capped."""

from .support import introduced, parameter


def test_came_with_osaka():
    assert introduced(7825) == "Osaka"
    assert parameter("tx_gas_cap") == {"Frontier": 0, "Osaka": 16_777_216}
