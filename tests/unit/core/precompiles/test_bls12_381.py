"""Tests sums, multiples and pairings of BLS12-381 against py_ecc."""

import functools
from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from py_ecc import optimized_bls12_381 as bls

from fastevm.core.precompiles.registry import run

PRIME, ORDER = bls.field_modulus, bls.curve_order
G1ADD, G1MSM, G2ADD, G2MSM, PAIRING, MAP_FP, MAP_FP2 = range(0x0B, 0x12)
GENEROUS = 10**9
INFINITY_1, INFINITY_2 = bytes(128), bytes(256)
YES, NO = (1).to_bytes(32, "big"), bytes(32)
INVALID = (False, b"", 0)

few = settings(max_examples=10)
scalars = st.one_of(
    st.sampled_from([0, 1, 2, ORDER - 1, ORDER, ORDER + 1, 2**256 - 1]), st.integers(0, 2**256 - 1)
)


def fp(n: int) -> bytes:
    return int(n).to_bytes(64, "big")


def word(n: int) -> bytes:
    return n.to_bytes(32, "big")


@functools.cache
def g1(k: int) -> bytes:
    point = bls.multiply(bls.G1, k % ORDER)
    return INFINITY_1 if bls.is_inf(point) else b"".join(map(fp, bls.normalize(point)))


@functools.cache
def g2(k: int) -> bytes:
    point = bls.multiply(bls.G2, k % ORDER)
    if bls.is_inf(point):
        return INFINITY_2
    return b"".join(fp(c) for coordinate in bls.normalize(point) for c in coordinate.coeffs)


def outside_g1() -> Iterator[bytes]:
    """Yields points on the curve of G1 that are almost surely outside the subgroup."""
    for x in range(1, 40):
        y = pow(x**3 + 4, (PRIME + 1) // 4, PRIME)
        if (y * y - x**3 - 4) % PRIME == 0:
            yield fp(x) + fp(y)


def outside_g2() -> Iterator[bytes]:
    """Yields points on the curve of G2 with x = n u, where y^2 = 4 + (4 - n^3) u."""
    for n in range(1, 40):
        re, im = 4, (4 - n**3) % PRIME
        norm = pow(re * re + im * im, (PRIME + 1) // 4, PRIME)
        half = (re + norm) * pow(2, -1, PRIME) % PRIME
        root = pow(half, (PRIME + 1) // 4, PRIME)
        if not root:
            continue
        other = im * pow(2 * root, -1, PRIME) % PRIME
        if (root * root - other * other - re) % PRIME == 0:
            yield fp(0) + fp(n) + fp(root) + fp(other)


# --- sums ---


@few
@given(scalars, scalars)
@example(5, 5)
@example(5, ORDER - 5)
@example(0, 5)
@example(0, 0)
def test_sum(a: int, b: int) -> None:
    assert run(G1ADD, g1(a) + g1(b), 375) == (True, g1(a + b), 0)
    assert run(G2ADD, g2(a) + g2(b), 600) == (True, g2(a + b), 0)


def test_a_sum_takes_points_outside_the_group() -> None:
    for point in list(outside_g1())[:3]:
        assert run(G1ADD, point + INFINITY_1, 375) == (True, point, 0)
    for point in list(outside_g2())[:3]:
        assert run(G2ADD, point + INFINITY_2, 600) == (True, point, 0)


# --- sums of multiples ---


@few
@given(st.lists(st.tuples(scalars, scalars), min_size=1, max_size=6))
@example([(0, 5)])
@example([(5, 0), (0, 0)])
@example([(3, 7), (3, ORDER - 7)])
@example([(3, 7), (3, 7), (3, 7)])
def test_sum_of_multiples(terms: list[tuple[int, int]]) -> None:
    total = sum(a * k for a, k in terms)
    first = b"".join(g1(a) + word(k) for a, k in terms)
    second = b"".join(g2(a) + word(k) for a, k in terms)
    assert run(G1MSM, first, GENEROUS)[:2] == (True, g1(total))
    assert run(G2MSM, second, GENEROUS)[:2] == (True, g2(total))


@pytest.mark.parametrize(
    ("terms", "first", "second"),
    [(1, 1000, 1000), (2, 949, 1000), (128, 519, 524), (200, 519, 524)],
)
def test_price_by_the_number_of_terms(terms: int, first: int, second: int) -> None:
    price = terms * 12_000 * first // 1000
    assert run(G1MSM, bytes(160 * terms), price) == (True, INFINITY_1, 0)
    assert run(G1MSM, bytes(160 * terms), price - 1) == INVALID
    price = terms * 22_500 * second // 1000
    assert run(G2MSM, bytes(288 * terms), price) == (True, INFINITY_2, 0)
    assert run(G2MSM, bytes(288 * terms), price - 1) == INVALID


@pytest.mark.parametrize("scalar", [0, 1, 2])
def test_a_multiple_takes_only_points_of_the_group(scalar: int) -> None:
    for point in list(outside_g1())[:5]:
        assert run(G1MSM, point + word(scalar), GENEROUS) == INVALID
        assert run(G1MSM, g1(1) + word(1) + point + word(scalar), GENEROUS) == INVALID
    for point in list(outside_g2())[:5]:
        assert run(G2MSM, point + word(scalar), GENEROUS) == INVALID


# --- pairings ---


def equals_one(*exponents: tuple[int, int]) -> bool:
    ok, output, _ = run(PAIRING, b"".join(g1(a) + g2(b) for a, b in exponents), GENEROUS)
    assert ok and output in (YES, NO)
    return output == YES


@few
@given(st.integers(1, ORDER - 1), st.integers(1, ORDER - 1))
def test_bilinear(a: int, b: int) -> None:
    assert equals_one((a, b), (-a * b, 1))
    assert not equals_one((a, b), (-a * b - 1, 1))
    assert not equals_one((a, b))


@pytest.mark.parametrize("count", [1, 15, 16, 17, 33])
def test_any_number_of_pairs(count: int) -> None:
    exponents = [(1 + i % 7, 1 + i % 5) for i in range(count)]
    total = sum(a * b for a, b in exponents)
    assert equals_one(*exponents, (-total, 1))
    assert not equals_one(*exponents, (-total + 1, 1))


@pytest.mark.parametrize("count", [1, 16, 17])
def test_infinity_pairs_are_one(count: int) -> None:
    assert equals_one(*[(0, 0)] * count)
    assert equals_one(*[(0, 1), (1, 0)] * count)
    assert not equals_one(*[(0, 1)] * count, (1, 1))
    assert equals_one((1, 1), *[(0, 1)] * count, (-1, 1))


def test_a_pairing_takes_only_points_of_the_groups() -> None:
    for point in list(outside_g1())[:5]:
        assert run(PAIRING, point + g2(1), GENEROUS) == INVALID
        assert run(PAIRING, point + INFINITY_2, GENEROUS) == INVALID
    for point in list(outside_g2())[:5]:
        assert run(PAIRING, g1(1) + point, GENEROUS) == INVALID
        assert run(PAIRING, INFINITY_1 + point, GENEROUS) == INVALID


# --- encodings ---


@pytest.mark.parametrize("coordinate", range(2))
@pytest.mark.parametrize("value", [PRIME, PRIME + 1, 2**384 - 1, 2**384, 1 << 504, 1 << 511])
def test_field_elements_are_below_the_prime(coordinate: int, value: int) -> None:
    point = bytearray(g1(1))
    point[64 * coordinate : 64 * coordinate + 64] = fp(value)
    assert run(G1ADD, bytes(point) + INFINITY_1, GENEROUS) == INVALID
    assert run(G1ADD, INFINITY_1 + bytes(point), GENEROUS) == INVALID
    assert run(G1MSM, bytes(point) + word(0), GENEROUS) == INVALID
    assert run(MAP_FP, fp(value), GENEROUS) == INVALID
    both = [fp(0), fp(0)]
    both[coordinate] = fp(value)
    assert run(MAP_FP2, b"".join(both), GENEROUS) == INVALID


def test_the_prime_less_one_is_an_element() -> None:
    assert run(MAP_FP, fp(PRIME - 1), 5500)[0]
    assert run(MAP_FP2, fp(PRIME - 1) * 2, 23_800)[0]


def test_points_off_the_curve_are_refused() -> None:
    assert run(G1ADD, fp(1) + fp(1) + INFINITY_1, GENEROUS) == INVALID
    assert run(G2ADD, fp(1) * 4 + INFINITY_2, GENEROUS) == INVALID
    assert run(G1MSM, fp(1) + fp(1) + word(0), GENEROUS) == INVALID
    assert run(PAIRING, fp(1) + fp(1) + INFINITY_2, GENEROUS) == INVALID


@few
@given(st.integers(0, PRIME - 1), st.integers(0, PRIME - 1))
@example(0, 0)
def test_maps_lead_into_the_groups(re: int, im: int) -> None:
    first = run(MAP_FP, fp(re), 5500)[1]
    second = run(MAP_FP2, fp(re) + fp(im), 23_800)[1]
    assert run(PAIRING, first + second, GENEROUS)[0]


@pytest.mark.parametrize(
    ("number", "unit"),
    [
        (G1ADD, 256),
        (G1MSM, 160),
        (G2ADD, 512),
        (G2MSM, 288),
        (PAIRING, 384),
        (MAP_FP, 64),
        (MAP_FP2, 128),
    ],
)
def test_other_lengths_are_refused(number: int, unit: int) -> None:
    assert run(number, bytes(unit), GENEROUS)[0]
    for size in (0, 1, unit - 1, unit + 1, 2 * unit - 1):
        assert run(number, bytes(size), GENEROUS) == INVALID
