"""Tests 256-bit words against Python's integers, also when a result overwrites an operand."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastevm.testing import primitives as c_functions
from fastevm.testing.words import OPERATIONS

MODULUS = 2**256
LIMB = 2**64


def signed(number: int) -> int:
    return number - MODULUS if number >> 255 else number


def truncated(a: int, b: int) -> int:
    """Returns a / b, rounded towards zero."""
    quotient = abs(a) // abs(b)
    return -quotient if (a < 0) != (b < 0) else quotient


def signextend(index: int, value: int) -> int:
    if index >= 31:
        return value
    low = value % (1 << (8 * index + 8))
    negative = low >> (8 * index + 7)
    return low | (MODULUS - (1 << (8 * index + 8))) if negative else low


EXPECTED: dict[str, Callable[..., int]] = {
    "not": lambda a: MODULUS - 1 - a,
    "negate": lambda a: -a % MODULUS,
    "add": lambda a, b: (a + b) % MODULUS,
    "sub": lambda a, b: (a - b) % MODULUS,
    "mul": lambda a, b: a * b % MODULUS,
    "div": lambda a, b: a // b if b else 0,
    "mod": lambda a, b: a % b if b else 0,
    "sdiv": lambda a, b: truncated(signed(a), signed(b)) % MODULUS if b else 0,
    "smod": lambda a, b: (
        (signed(a) - signed(b) * truncated(signed(a), signed(b))) % MODULUS if b else 0
    ),
    "exp": lambda a, b: pow(a, b, MODULUS),
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "shl": lambda a, b: (b << a) % MODULUS if a < 256 else 0,
    "shr": lambda a, b: b >> a if a < 256 else 0,
    "sar": lambda a, b: (signed(b) >> min(a, 256)) % MODULUS,
    "byte": lambda a, b: (b >> (8 * (31 - a))) & 0xFF if a < 32 else 0,
    "signextend": signextend,
    "addmod": lambda a, b, n: (a + b) % n if n else 0,
    "mulmod": lambda a, b, n: a * b % n if n else 0,
    "eq": lambda a, b: a == b,
    "lt": lambda a, b: a < b,
    "slt": lambda a, b: signed(a) < signed(b),
}
ARITY = {name: reference.__code__.co_argcount for name, reference in EXPECTED.items()}

# Limbs at the limits of carries and of the digit estimates of long division.
limbs = st.one_of(
    st.sampled_from([0, 1, 2**63 - 1, 2**63, 2**63 + 1, LIMB - 2, LIMB - 1]),
    st.integers(0, LIMB - 1),
)
words = st.one_of(
    st.integers(0, 300),
    st.tuples(limbs, limbs, limbs, limbs).map(
        lambda d: d[0] | d[1] << 64 | d[2] << 128 | d[3] << 192
    ),
    st.integers(0, 256).flatmap(lambda bits: st.integers(0, 2**bits - 1)),
    st.integers(0, 255).map(lambda bit: 1 << bit),
    st.integers(0, 300).map(lambda distance: MODULUS - 1 - distance),
)


def test_every_operation_has_a_reference() -> None:
    assert set(OPERATIONS) == set(EXPECTED)


@pytest.mark.parametrize("name", sorted(EXPECTED))
@settings(max_examples=300)
@given(operands=st.tuples(words, words, words))
def test_an_operation_agrees_with_integers(name: str, operands: tuple[int, int, int]) -> None:
    taken = operands[: ARITY[name]]
    assert OPERATIONS[name](*taken) == EXPECTED[name](*taken)


@pytest.mark.parametrize("name", ["shl", "shr", "sar", "byte", "signextend"])
def test_small_indices_are_right_one_by_one(name: str) -> None:
    for value in (0, 1, 2**255, MODULUS - 1, 0x80FF7F01 * (MODULUS // 0xFFFFFFFF), 2**256 // 3):
        for index in range(300):
            assert OPERATIONS[name](index, value) == EXPECTED[name](index, value), index


@pytest.mark.parametrize("name", ["div", "mod", "sdiv", "smod"])
def test_division_by_zero_gives_zero(name: str) -> None:
    assert OPERATIONS[name](7, 0) == 0


@pytest.mark.parametrize("name", ["addmod", "mulmod"])
def test_modulus_zero_gives_zero(name: str) -> None:
    assert OPERATIONS[name](MODULUS - 1, MODULUS - 1, 0) == 0


def test_the_most_negative_number_divided_by_minus_one_is_itself() -> None:
    assert OPERATIONS["sdiv"](2**255, MODULUS - 1) == 2**255


def test_zero_to_the_power_of_zero_is_one() -> None:
    assert OPERATIONS["exp"](0, 0) == 1


def test_a_digit_estimated_one_too_large_is_corrected() -> None:
    # In Knuth's algorithm D, the estimated digit passes the test but is one too large, so the
    # subtraction borrows.
    u = (0x7FFFFFFFFFFFFFFF << 192) | (0x8000000000000000 << 128)
    v = (0x8000000000000000 << 128) | LIMB - 1
    assert OPERATIONS["div"](u, v) == u // v
    assert OPERATIONS["mod"](u, v) == u % v


# MULMOD caches its last modulus, so the tests below use each modulus several times.
moduli = st.one_of(
    st.sampled_from([2**256 - 1, 2**256 - 2, 2**256 - 2**32 - 977, 2**255, 2**192, 2**192 + 1]),
    st.integers(192, 255).map(lambda bit: 1 << bit),
    words,
)


@settings(max_examples=200)
@given(moduli, st.lists(st.tuples(words, words), min_size=3, max_size=6))
def test_mulmod_with_a_repeated_modulus(modulus: int, factors: list[tuple[int, int]]) -> None:
    for a, b in factors:
        assert OPERATIONS["mulmod"](a, b, modulus) == EXPECTED["mulmod"](a, b, modulus)


@settings(max_examples=100)
@given(st.lists(st.tuples(words, words, st.integers(0, 1)), max_size=8), words, words)
def test_mulmod_with_moduli_in_turn(
    steps: list[tuple[int, int, int]], first: int, second: int
) -> None:
    for a, b, which in steps:
        modulus = (first, second)[which]
        assert OPERATIONS["mulmod"](a, b, modulus) == EXPECTED["mulmod"](a, b, modulus)


@given(words)
def test_the_significant_bits_are_counted(number: int) -> None:
    assert c_functions.bits_of(number) == number.bit_length()


@given(st.binary(max_size=32))
def test_big_endian_bytes_load(data: bytes) -> None:
    assert c_functions.load_bytes(data) == int.from_bytes(data, "big")


@given(words)
def test_words_store_as_32_big_endian_bytes(number: int) -> None:
    assert c_functions.store_bytes(number) == number.to_bytes(32, "big")


@given(st.binary(min_size=20, max_size=20))
def test_an_address_becomes_a_word(address: bytes) -> None:
    assert c_functions.address_to_int(address) == int.from_bytes(address, "big")


@given(words)
def test_a_word_becomes_the_address_of_its_low_20_bytes(number: int) -> None:
    assert c_functions.int_to_address(number) == (number % 2**160).to_bytes(20, "big")


@pytest.mark.parametrize("number", [-1, 2**256])
def test_a_number_out_of_range_is_refused(number: int) -> None:
    with pytest.raises(OverflowError):
        OPERATIONS["not"](number)


@pytest.mark.parametrize("value", [1.0, "1", None, b"\x01"])
def test_what_is_no_int_is_refused(value: object) -> None:
    with pytest.raises(TypeError):
        OPERATIONS["not"](value)
