"""EIP-1108: the alt_bn128 precompiles become cheaper."""

import pytest

from .support import introduced, parameter


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("bn254_add_cost", 500, 150),
        ("bn254_mul_cost", 40_000, 6_000),
        ("bn254_pairing_base_cost", 100_000, 45_000),
        ("bn254_pairing_pair_cost", 80_000, 34_000),
    ],
)
def test_prices_fall_with_istanbul(name, before, after):
    assert introduced(1108) == "Istanbul"
    assert parameter(name) == {"Frontier": 0, "Byzantium": before, "Istanbul": after}
