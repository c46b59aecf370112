"""EIP-2: Homestead makes creation dear, refuses high s and fails creations that cannot pay."""

from .support import introduced, parameter


def test_came_with_homestead():
    assert introduced(2) == "Homestead"


def test_a_creating_transaction_costs_53000():
    assert parameter("tx_create_cost") == {"Frontier": 0, "Homestead": 32_000}
    assert parameter("tx_cost") == {"Frontier": 21_000}


def test_high_s_is_refused():
    assert parameter("signature_low_s") == {"Frontier": False, "Homestead": True}


def test_a_creation_that_cannot_pay_for_its_code_fails():
    assert parameter("code_deposit_must_be_paid") == {"Frontier": False, "Homestead": True}
