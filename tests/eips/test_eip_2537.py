"""EIP-2537: Precompile for BLS12-381 curve operations.

Seven precompiles add points, sum multiples of points, map field elements to points and check
pairings on BLS12-381.
"""

import pytest
from py_ecc import optimized_bls12_381 as bls

from .support import before_and_after, call_precompile

BEFORE, AFTER = before_and_after(2537)
G1ADD, G1MSM, G2ADD, G2MSM, PAIRING, MAP_FP, MAP_FP2 = range(0x0B, 0x12)


def element(number):
    return int(number).to_bytes(64, "big")


def g1(multiple):
    x, y = bls.normalize(bls.multiply(bls.G1, multiple % bls.curve_order))
    return element(x) + element(y)


def g2(multiple):
    point = bls.normalize(bls.multiply(bls.G2, multiple % bls.curve_order))
    return b"".join(element(number) for coordinate in point for number in coordinate.coeffs)


def scalar(number):
    return number.to_bytes(32, "big")


@pytest.mark.parametrize(
    ("address", "data", "expected", "gas"),
    [
        (G1ADD, g1(2) + g1(3), g1(5), 375),
        (G1MSM, g1(2) + scalar(3), g1(6), 12_000),
        (G1MSM, g1(2) + scalar(3) + g1(5) + scalar(7), g1(41), 2 * 12_000 * 949 // 1_000),
        (G2ADD, g2(2) + g2(3), g2(5), 600),
        (G2MSM, g2(2) + scalar(3), g2(6), 22_500),
        (G2MSM, g2(2) + scalar(3) + g2(5) + scalar(7), g2(41), 45_000),
        (PAIRING, g1(2) + g2(3) + g1(-6) + g2(1), scalar(1), 37_700 + 2 * 32_600),
        (PAIRING, g1(2) + g2(3) + g1(-5) + g2(1), scalar(0), 37_700 + 2 * 32_600),
    ],
)
def test_an_empty_account_becomes_a_precompile(address, data, expected, gas):
    before, after = (call_precompile(fork, address, data) for fork in (BEFORE, AFTER))
    assert (before.success, before.output, before.gas_used) == (True, b"", 0)
    assert (after.success, after.output, after.gas_used) == (True, expected, gas)


@pytest.mark.parametrize(
    ("address", "data", "add", "msm", "gas"),
    [
        (MAP_FP, element(5), G1ADD, G1MSM, 5_500),
        (MAP_FP2, element(5) + element(7), G2ADD, G2MSM, 23_800),
    ],
)
def test_field_elements_map_to_points_of_the_group(address, data, add, msm, gas):
    before, after = (call_precompile(fork, address, data) for fork in (BEFORE, AFTER))
    assert (before.success, before.output, before.gas_used) == (True, b"", 0)
    assert (after.success, after.gas_used) == (True, gas)
    point = after.output
    doubled = call_precompile(AFTER, msm, point + scalar(2)).output
    assert doubled == call_precompile(AFTER, add, point + point).output != b""
    infinity = bytes(len(point))
    assert call_precompile(AFTER, msm, point + scalar(bls.curve_order)).output == infinity


def test_other_input_fails_and_takes_all_gas():
    for data in (g1(1), g1(1)[:-1] + b"\0" + g1(1), b"\x01" + g1(1)[1:] + g1(1)):
        assert call_precompile(BEFORE, G1ADD, data).success
        failed = call_precompile(AFTER, G1ADD, data, gas=1_000)
        assert (failed.success, failed.gas_used) == (False, 1_000)
