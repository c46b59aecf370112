"""EIP-7951: signatures on the curve secp256r1."""

from .support import introduced, parameter, precompile


def test_came_with_osaka_at_address_0x100():
    assert introduced(7951) == "Osaka"
    assert precompile("P256VERIFY") == {"Frontier": None, "Osaka": 0x100}
    assert parameter("p256_verify_cost") == {"Frontier": 0, "Osaka": 6_900}
