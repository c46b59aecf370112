"""EIP-2718: typed transaction envelopes."""

from .support import introduced, parameter


def test_envelopes_are_accepted_from_berlin_on():
    assert introduced(2718) == "Berlin"
    assert list(parameter("max_tx_type"))[:2] == ["Frontier", "Berlin"]
