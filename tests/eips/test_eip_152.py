"""EIP-152: the precompile of BLAKE2's compression function."""

from .support import introduced, parameter, precompile


def test_came_with_istanbul_at_address_9_for_one_gas_per_round():
    assert introduced(152) == "Istanbul"
    assert precompile("BLAKE2F") == {"Frontier": None, "Istanbul": 0x09}
    assert parameter("blake2f_round_cost") == {"Frontier": 0, "Istanbul": 1}
