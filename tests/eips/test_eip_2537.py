"""EIP-2537: curve operations on BLS12-381."""

import pytest

from .support import introduced, parameter, precompile


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("BLS12_G1ADD", 0x0B),
        ("BLS12_G1MSM", 0x0C),
        ("BLS12_G2ADD", 0x0D),
        ("BLS12_G2MSM", 0x0E),
        ("BLS12_PAIRING_CHECK", 0x0F),
        ("BLS12_MAP_FP_TO_G1", 0x10),
        ("BLS12_MAP_FP2_TO_G2", 0x11),
    ],
)
def test_came_with_prague(name, address):
    assert introduced(2537) == "Prague"
    assert precompile(name) == {"Frontier": None, "Prague": address}


@pytest.mark.parametrize(
    ("name", "gas"),
    [
        ("bls12_g1_add_cost", 375),
        ("bls12_g1_mul_cost", 12_000),
        ("bls12_g2_add_cost", 600),
        ("bls12_g2_mul_cost", 22_500),
        ("bls12_pairing_base_cost", 37_700),
        ("bls12_pairing_pair_cost", 32_600),
        ("bls12_map_fp_to_g1_cost", 5_500),
        ("bls12_map_fp2_to_g2_cost", 23_800),
    ],
)
def test_prices(name, gas):
    assert parameter(name) == {"Frontier": 0, "Prague": gas}
