"""EIP-7702: accounts may delegate to code; the envelope of type 4."""

from .support import introduced, parameter


def test_came_with_prague():
    assert introduced(7702) == "Prague"
    assert parameter("has_delegations") == {"Frontier": False, "Prague": True}
    assert parameter("max_tx_type")["Prague"] == 4


def test_an_authorization_is_paid_as_for_an_empty_account_and_partly_given_back():
    assert parameter("authorization_cost") == {"Frontier": 0, "Prague": 25_000}
    assert parameter("authorization_refund") == {"Frontier": 0, "Prague": 25_000 - 12_500}
