"""Tests the BN254 precompiles against py_ecc, with portable and with processor-specific code."""

import functools
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise, product
from math import gcd

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from py_ecc import optimized_bn128 as bn

from fastevm.core.precompiles.bn254 import field as bn254_field
from fastevm.core.precompiles.bn254.curve import (
    CUBE_ROOT,
    EIGENVALUE,
    GROUP_ORDER,
    LATTICE,
    U,
    signed_digits,
)
from fastevm.core.precompiles.bn254.line_cache import CAPACITY
from fastevm.core.precompiles.registry import run
from fastevm.core.primitives.processor import IN_USE, REPLACED

from .conftest import Vector

PRIME = bn254_field.PRIME
ORDER = GROUP_ORDER
ADD, MUL, PAIRING = 0x06, 0x07, 0x08
GENEROUS = 10**9
INFINITY_1, INFINITY_2 = bytes(64), bytes(128)
YES, NO = (1).to_bytes(32, "big"), bytes(32)
INVALID = (False, b"", 0)

few = settings(
    max_examples=15,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
elements = st.one_of(
    st.sampled_from([0, 1, 2, PRIME - 1, PRIME - 2, 2**255 % PRIME]), st.integers(0, PRIME - 1)
)
pairs = st.tuples(elements, elements)
scalars = st.one_of(
    st.sampled_from([0, 1, 2, ORDER - 1, ORDER, ORDER + 1, 5 * ORDER, 2**256 - 1]),
    st.integers(0, 2**256 - 1),
)


@pytest.fixture(params=[True, False], ids=["processor", "portable"], autouse=True)
def body(request: pytest.FixtureRequest) -> Iterator[bool]:
    if bn254_field.select(request.param) != request.param:
        pytest.skip("this processor has neither mulx nor adx")
    yield request.param
    bn254_field.select(True)


def word(n: int) -> bytes:
    return int(n).to_bytes(32, "big")


@functools.cache
def g1(k: int) -> bytes:
    point = bn.multiply(bn.G1, k % ORDER)
    return INFINITY_1 if bn.is_inf(point) else b"".join(map(word, bn.normalize(point)))


@functools.cache
def g2(k: int) -> bytes:
    point = bn.multiply(bn.G2, k % ORDER)
    if bn.is_inf(point):
        return INFINITY_2
    x, y = bn.normalize(point)
    return b"".join(word(c) for c in (x.coeffs[1], x.coeffs[0], y.coeffs[1], y.coeffs[0]))


def check(*points: tuple[bytes, bytes]) -> tuple[bool, bytes, int]:
    return run(PAIRING, b"".join(p + q for p, q in points), GENEROUS)


def equals_one(*exponents: tuple[int, int]) -> bool:
    ok, output, _ = check(*((g1(a), g2(b)) for a, b in exponents))
    assert ok and output in (YES, NO)
    return output == YES


def twist_points() -> Iterator[bytes]:
    """Yields points of the twist by increasing x. They are almost surely not in the subgroup."""
    twist_b = bn.FQ2([3, 0]) / bn.FQ2([9, 1])
    for n in range(1, 30):
        x = bn.FQ2([n, 1])
        y = square_root(x * x * x + twist_b)
        if y is not None:
            yield b"".join(word(c) for c in (x.coeffs[1], x.coeffs[0], y.coeffs[1], y.coeffs[0]))


def square_root(a: bn.FQ2) -> bn.FQ2 | None:
    # "Complex method": if re^2 + im^2 = n^2, the root's real part is a square root of (re + n) / 2
    # or of (re - n) / 2.
    re, im = (int(c) for c in a.coeffs)
    norm = pow(re * re + im * im, (PRIME + 1) // 4, PRIME)
    for n in (norm, -norm):
        half = (re + n) * pow(2, -1, PRIME) % PRIME
        root = pow(half, (PRIME + 1) // 4, PRIME)
        if root and root * root % PRIME == half:
            candidate = bn.FQ2([root, im * pow(2 * root, -1, PRIME) % PRIME])
            return candidate if candidate * candidate == a else None
    return None


# --- the field ---


@given(pairs, pairs)
@example((PRIME - 1, PRIME - 1), (PRIME - 1, PRIME - 1))
@example((0, PRIME - 1), (0, PRIME - 1))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_products_in_the_quadratic_extension(a: tuple[int, int], b: tuple[int, int]) -> None:
    expected = (a[0] * b[0] - a[1] * b[1]) % PRIME, (a[0] * b[1] + a[1] * b[0]) % PRIME
    assert bn254_field.multiply(a, b) == expected
    assert bn254_field.square(a) == bn254_field.multiply(a, a)


@given(pairs)
@example((0, 0))
@example((1, 0))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_number_times_its_inverse_is_one(a: tuple[int, int]) -> None:
    expected = (1, 0) if any(a) else (0, 0)
    assert bn254_field.multiply(a, bn254_field.invert(a)) == expected


def test_products_of_limbs_at_their_borders() -> None:
    limbs = (0, 1, 2**63, 2**64 - 1)
    numbers = [
        sum(limb << 64 * place for place, limb in enumerate(chosen)) % PRIME
        for chosen in product(limbs, repeat=4)
    ]
    near = [PRIME - 1, PRIME - 2, (PRIME - 1) // 2, 1, 0]
    for a, b in [*product(numbers, near), *zip(numbers, reversed(numbers), strict=True)]:
        assert bn254_field.multiply((a, b), (b, a)) == (0, (a * a + b * b) % PRIME)
        assert bn254_field.multiply((a, 0), (b, 0)) == (a * b % PRIME, 0)


def test_a_multiplication_that_answers_wrongly_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bn254_field, "known_answer", lambda: False)
    try:
        bn254_field.choose_code()
        assert IN_USE["bn254"] == "portable" and "bn254" in REPLACED
        assert run(ADD, g1(2) + g1(3), 150)[1] == g1(5)
    finally:
        monkeypatch.undo()
        REPLACED.pop("bn254", None)
        bn254_field.choose_code()


# --- the numbers behind the curve ---


def test_the_curve_is_made_from_u() -> None:
    assert bn.field_modulus == PRIME == 36 * U**4 + 36 * U**3 + 24 * U**2 + 6 * U + 1
    assert bn.curve_order == ORDER


@given(st.integers(0, 2**70), st.integers(2, 6))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_signed_digits_add_up(n: int, width: int) -> None:
    digits = signed_digits(n, width)
    assert sum(d << i for i, d in enumerate(digits)) == n
    assert all(d % 2 and abs(d) < 2 ** (width - 1) for d in digits if d)
    places = [place for place, d in enumerate(digits) if d]
    assert all(b - a >= width for a, b in pairwise(places))


@pytest.mark.parametrize("relation", [(U + 1, U, U, -2 * U), (6 * U + 2, 1, -1, 1)])
def test_the_group_tests_are_sound(relation: tuple[int, int, int, int]) -> None:
    # psi^2 = t psi - p on the twist, so the relation reduces to a + b psi. The number of points in
    # its kernel is its norm. Points over the field have orders that divide r times the cofactor.
    t = 6 * U**2 + 1
    powers = [(1, 0), (0, 1)]
    for _ in range(2):
        a, b = powers[-1]
        powers.append((-PRIME * b, a + t * b))
    a, b = (sum(c * power[i] for c, power in zip(relation, powers, strict=True)) for i in (0, 1))
    norm = a * a + a * b * t + b * b * PRIME
    cofactor = 2 * PRIME - ORDER
    assert gcd(norm, ORDER * cofactor) == ORDER
    assert sum(c * PRIME**i for i, c in enumerate(relation)) % ORDER == 0


def test_the_endomorphism_multiplies_by_its_eigenvalue() -> None:
    image = bn.FQ(CUBE_ROOT) * bn.G1[0], bn.G1[1], bn.G1[2]
    assert bn.eq(image, bn.multiply(bn.G1, EIGENVALUE))
    (short, minus_long), (long, same) = LATTICE
    assert short == same and short * same - minus_long * long == ORDER
    assert all((a + b * EIGENVALUE) % ORDER == 0 for a, b in LATTICE)


def test_the_hard_part_is_a_multiple_that_loses_nothing() -> None:
    a = 12 * U**3 + 6 * U**2 + 6 * U
    b = a - 2 * U
    exponent = (a + 6 * U**2 + 1) + b * PRIME + a * PRIME**2 + (b - 1) * PRIME**3
    factor, rest = divmod(exponent, (PRIME**4 - PRIME**2 + 1) // ORDER)
    assert rest == 0 and gcd(factor, ORDER) == 1


# --- sums and multiples ---


@few
@given(scalars, scalars)
@example(0, 0)
@example(5, 0)
@example(5, 5)
@example(5, ORDER - 5)
def test_sum(a: int, b: int) -> None:
    assert run(ADD, g1(a) + g1(b), 150) == (True, g1(a + b), 0)


@few
@given(scalars, scalars)
@example(1, 2**256 - 1)
@example(0, 3)
@example(3, 0)
@example(3, 16 * (ORDER // 31))
def test_multiple(a: int, k: int) -> None:
    assert run(MUL, g1(a) + word(k), 6000) == (True, g1(a * k), 0)


@pytest.mark.parametrize("k", [*range(40), *(ORDER - n for n in range(1, 20))])
def test_small_multiples(k: int) -> None:
    assert run(MUL, g1(1) + word(k), 6000)[1] == g1(k)


def test_short_input_is_padded_and_long_input_cut() -> None:
    assert run(ADD, b"", 150) == (True, INFINITY_1, 0)
    assert run(ADD, g1(3), 150)[1] == g1(3)
    assert run(ADD, g1(3) + g1(4) + b"\xff", 150)[1] == g1(7)
    assert run(MUL, b"", 6000) == (True, INFINITY_1, 0)
    assert run(MUL, g1(3), 6000)[1] == INFINITY_1
    assert run(MUL, g1(3) + b"\x01", 6000)[1] == g1(3 << 248)
    assert run(MUL, g1(3) + word(2) + b"\xff", 6000)[1] == g1(6)


BAD_G1 = [
    word(1) + word(1),
    word(0) + word(1),
    word(PRIME) + word(0),
    word(0) + word(PRIME),
    word(PRIME + 1) + word(2),
    word(1) + word(PRIME + 2),
    b"\xff" * 64,
]


@pytest.mark.parametrize("point", BAD_G1)
def test_what_is_no_point_is_refused(point: bytes) -> None:
    assert run(ADD, point + g1(1), 10_000) == INVALID
    assert run(ADD, g1(1) + point, 10_000) == INVALID
    assert run(MUL, point + word(0), 10_000) == INVALID
    assert check((point, g2(1))) == INVALID
    assert check((point, INFINITY_2)) == INVALID


def test_prices_before_istanbul() -> None:
    assert run(ADD, b"", 500, fork="byzantium") == (True, INFINITY_1, 0)
    assert run(MUL, b"", 40_000, fork="byzantium") == (True, INFINITY_1, 0)
    assert run(PAIRING, b"", 100_000, fork="byzantium") == (True, YES, 0)
    assert run(PAIRING, bytes(384), 260_000, fork="byzantium") == (True, YES, 0)


# --- pairings ---


@few
@given(st.integers(1, ORDER - 1), st.integers(1, ORDER - 1))
def test_bilinear(a: int, b: int) -> None:
    assert equals_one((a, b), (-a * b, 1))
    assert equals_one((a, b), (-1, a * b))
    assert not equals_one((a, b), (-a * b - 1, 1))
    assert not equals_one((a, b))


@pytest.mark.parametrize("count", [1, 2, 15, 16, 17, 32, 33, 40])
def test_any_number_of_pairs(count: int) -> None:
    exponents = [(1 + i % 7, 1 + i % 5) for i in range(count)]
    total = sum(a * b for a, b in exponents)
    assert equals_one(*exponents, (-total, 1))
    assert not equals_one(*exponents, (-total + 1, 1))


def test_no_pairs_are_one() -> None:
    assert run(PAIRING, b"", 45_000) == (True, YES, 0)


@pytest.mark.parametrize("count", [1, 16, 17])
def test_infinity_pairs_are_one(count: int) -> None:
    assert check(*[(INFINITY_1, INFINITY_2)] * count)[1] == YES
    assert check(*[(g1(1), INFINITY_2), (INFINITY_1, g2(1))] * count)[1] == YES
    assert check(*[(INFINITY_1, g2(1))] * count, (g1(1), g2(1)))[1] == NO
    assert check((g1(1), g2(1)), *[(INFINITY_1, g2(1))] * count, (g1(-1), g2(1)))[1] == YES


# --- cached points ---


def test_a_point_that_comes_again_gives_the_same() -> None:
    for a in range(1, 6):
        for b in (1001, 1002):
            assert equals_one((a, b), (-a * b, 1))
            assert not equals_one((a, b), (-a * b + 1, 1))
            assert equals_one((a, b), (-a, b))
            assert equals_one(*[(a, b)] * 17, (-17 * a, b))


def test_more_points_than_are_kept_come_again() -> None:
    points = [g2(2000 + n) for n in range(CAPACITY + 16)]
    for turn in range(1, 4):
        for point in points:
            assert check((g1(turn), point), (g1(-turn), point))[1] == YES
            assert check((g1(turn), point), (g1(1 - turn), point))[1] == NO


def test_a_point_outside_the_group_is_refused_again() -> None:
    point = next(twist_points())
    for _ in range(4):
        assert check((g1(1), point)) == INVALID
        assert check((g1(1), g2(1)), (g1(2), point), (g1(3), g2(1))) == INVALID
        assert equals_one((1, 1), (-1, 1))


def test_threads_share_points() -> None:
    points = [g2(3000 + n) for n in range(12)]

    def work(thread: int) -> bool:
        return all(
            check((g1(1 + thread), points[n % 12]), (g1(-1 - thread), points[n % 12]))[1] == YES
            for n in range(40)
        )

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))


@pytest.mark.parametrize("size", [1, 191, 193, 383])
def test_a_length_that_is_no_multiple_of_192_is_refused(size: int) -> None:
    assert run(PAIRING, bytes(size), GENEROUS) == INVALID


def test_a_point_of_the_twist_outside_the_group_is_refused() -> None:
    points = list(twist_points())
    assert len(points) > 5
    for point in points:
        assert check((g1(1), point)) == INVALID
        assert check((INFINITY_1, point)) == INVALID


def test_a_point_of_small_order_is_refused() -> None:
    # 10069 divides the cofactor. For points of this small order, intermediate sums can be infinity.
    cofactor = 2 * PRIME - ORDER
    assert cofactor % 10069 == 0
    data = next(twist_points())
    c = [int.from_bytes(data[i : i + 32], "big") for i in range(0, 128, 32)]
    point = bn.FQ2([c[1], c[0]]), bn.FQ2([c[3], c[2]]), bn.FQ2.one()
    small = bn.multiply(point, ORDER * cofactor // 10069)
    assert not bn.is_inf(small)
    for k in range(1, 12):
        x, y = bn.normalize(bn.multiply(small, k))
        words = (x.coeffs[1], x.coeffs[0], y.coeffs[1], y.coeffs[0])
        assert check((g1(1), b"".join(map(word, words)))) == INVALID


@pytest.mark.parametrize("position", range(4))
def test_a_coordinate_of_the_twist_is_below_the_prime(position: int) -> None:
    good = g2(2)
    coordinate = int.from_bytes(good[32 * position :][:32], "big")
    bad = good[: 32 * position] + word(coordinate + PRIME) + good[32 * position + 32 :]
    assert check((g1(1), bad)) == INVALID


def test_a_point_off_the_twist_is_refused() -> None:
    assert check((g1(1), bytes(127) + b"\x01")) == INVALID
    assert check((g1(1), g2(1)[:-1] + bytes([g2(1)[-1] ^ 1]))) == INVALID


def test_known_answers(vectors: Mapping[str, Sequence[Vector]]) -> None:
    for file, number in (("bn256Add", ADD), ("bn256ScalarMul", MUL), ("bn256Pairing", PAIRING)):
        for vector in vectors[file]:
            assert run(number, vector.data, GENEROUS)[:2] == (True, vector.expected)
