"""EIP-5656: MCOPY."""

from .support import introduced, parameter, price


def test_came_with_cancun_at_the_prices_of_the_other_copies():
    assert introduced(5656) == "Cancun"
    assert price("MCOPY") == {"Frontier": None, "Cancun": 3}
    assert price("CALLDATACOPY") == {"Frontier": 3}
    assert parameter("copy_word_cost") == {"Frontier": 3}
