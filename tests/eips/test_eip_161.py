"""EIP-161: empty accounts are cleared away."""

import pytest

from .support import introduced, parameter


@pytest.mark.parametrize("flag", ["clears_empty_accounts", "new_account_cost_needs_value"])
def test_came_with_spurious_dragon(flag):
    assert introduced(161) == "SpuriousDragon"
    assert parameter(flag) == {"Frontier": False, "SpuriousDragon": True}


def test_a_contract_is_born_with_nonce_1():
    assert parameter("created_account_nonce") == {"Frontier": 0, "SpuriousDragon": 1}
