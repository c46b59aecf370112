"""Tests MODEXP against Python's pow, and its gas against the formulas of each fork."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fastevm.core.precompiles.registry import run

GENEROUS = 2**63 - 1
FORKS = ["byzantium", "berlin", "osaka"]


def word(n: int) -> bytes:
    return n.to_bytes(32, "big")


def call(base: bytes, exponent: bytes, modulus: bytes) -> bytes:
    lengths = word(len(base)) + word(len(exponent)) + word(len(modulus))
    return lengths + base + exponent + modulus


def cost(fork: str, data: bytes) -> int:
    """Returns the gas by EIP-198, EIP-2565 and EIP-7883, computed with Python integers."""
    data += bytes(96)
    base, exponent, modulus = (int.from_bytes(data[i : i + 32], "big") for i in (0, 32, 64))
    first = data[96 + base : 96 + base + min(exponent, 32)] if base < len(data) else b""
    head = int.from_bytes(first.ljust(min(exponent, 32), b"\x00"), "big")
    tail_weight = 16 if fork == "osaka" else 8
    count = max(exponent - 32, 0) * tail_weight + max(head.bit_length() - 1, 0)
    count = max(count, 1)
    x = max(base, modulus)
    words = (x + 7) // 8
    if fork == "byzantium":
        if x <= 64:
            complexity = x * x
        elif x <= 1024:
            complexity = x * x // 4 + 96 * x - 3072
        else:
            complexity = x * x // 16 + 480 * x - 199680
        return complexity * count // 20
    if fork == "berlin":
        return max(200, words * words * count // 3)
    return max(500, (16 if x <= 32 else 2 * words * words) * count)


numbers = st.binary(max_size=70)


@pytest.mark.parametrize("fork", FORKS)
@given(base=numbers, exponent=st.binary(max_size=40), modulus=numbers)
@example(base=b"", exponent=b"", modulus=b"")
@example(base=b"", exponent=b"", modulus=b"\x01")
@example(base=b"", exponent=b"", modulus=b"\x02")
@example(base=b"\x03", exponent=b"", modulus=b"\x00\x00")
@example(base=b"\x03", exponent=b"\xff" * 33, modulus=b"\x00" * 31 + b"\x08")
def test_value_and_price(fork: str, base: bytes, exponent: bytes, modulus: bytes) -> None:
    b, e, m = (int.from_bytes(x, "big") for x in (base, exponent, modulus))
    data = call(base, exponent, modulus)
    expected = (pow(b, e, m) if m else 0).to_bytes(len(modulus), "big")
    price = cost(fork, data)
    assert run(0x05, data, GENEROUS, fork=fork) == (True, expected, GENEROUS - price)
    assert run(0x05, data, price, fork=fork) == (True, expected, 0)
    assert run(0x05, data, price - 1, fork=fork) == (False, b"", 0)


@given(data=st.binary(max_size=40), lengths=st.tuples(*[st.integers(0, 60)] * 3))
def test_operands_past_the_input_are_zeros(data: bytes, lengths: tuple[int, int, int]) -> None:
    header = b"".join(map(word, lengths))
    whole = header + data.ljust(sum(lengths), b"\x00")
    assert run(0x05, header + data, GENEROUS) == run(0x05, whole, GENEROUS)


@pytest.mark.parametrize("size", range(100))
def test_a_header_that_ends_early_reads_as_zeros(size: int) -> None:
    data = call(b"\x02", b"\x05", b"\x07")[:size]
    assert run(0x05, data, GENEROUS) == run(0x05, data.ljust(99, b"\x00"), GENEROUS)


lengths = st.one_of(
    st.integers(0, 2000),
    st.integers(2**30, 2**40),
    st.integers(2**60, 2**66),
    st.sampled_from([2**64 - 1, 2**64, 2**255, 2**256 - 1]),
)


@pytest.mark.parametrize("fork", FORKS)
@given(base=lengths, exponent=lengths, modulus=lengths, head=st.binary(max_size=40))
def test_what_nobody_can_pay_is_refused_at_once(
    fork: str, base: int, exponent: int, modulus: int, head: bytes
) -> None:
    data = word(base) + word(exponent) + word(modulus) + head
    gas = 10_000_000
    price = cost(fork, data)
    if price > gas or (fork == "osaka" and max(base, exponent, modulus) > 1024):
        assert run(0x05, data, gas, fork=fork) == (False, b"", 0)
    else:
        ok, output, gas_left = run(0x05, data, gas, fork=fork)
        assert ok and len(output) == modulus and gas_left == gas - price


@pytest.mark.parametrize("fork", ["byzantium", "berlin"])
def test_a_long_exponent_of_nothing_costs_little(fork: str) -> None:
    data = word(0) + word(2**256 - 1) + word(0)
    price = {"byzantium": 0, "berlin": 200}[fork]
    assert run(0x05, data, 1000, fork=fork) == (True, b"", 1000 - price)


@pytest.mark.parametrize("position", range(3))
def test_osaka_limits_each_length(position: int) -> None:
    lengths = [0, 0, 0]
    lengths[position] = 1024
    assert run(0x05, b"".join(map(word, lengths)), GENEROUS)[0]
    lengths[position] = 1025
    assert run(0x05, b"".join(map(word, lengths)), GENEROUS) == (False, b"", 0)
    assert run(0x05, b"".join(map(word, lengths)), GENEROUS, fork="prague")[0]


@pytest.mark.parametrize("fork", ["byzantium", "berlin"])
def test_operands_beyond_the_host_are_a_lack_of_memory(fork: str) -> None:
    with pytest.raises(MemoryError):
        run(0x05, word(0) + word(0) + word(2**27), GENEROUS, fork=fork)


def test_a_thousand_bytes() -> None:
    base, exponent, modulus = b"\xfe" * 1024, b"\xab" * 40, b"\xcd" * 1024
    expected = pow(*(int.from_bytes(x, "big") for x in (base, exponent, modulus)))
    data = call(base, exponent, modulus)
    assert run(0x05, data, GENEROUS)[1] == expected.to_bytes(1024, "big")


KNOWN_PRIMES = [
    0x30644E72E131A029B85045B68181585D2833E84879B9709143E1F593F0000001,
    0x30644E72E131A029B85045B68181585D97816A916871CA8D3C208C16D87CFD47,
    0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001,
]


@pytest.mark.parametrize("prime", KNOWN_PRIMES)
@given(base=st.integers(0, 2**256 - 1), off=st.sampled_from([0, 0, 0, 1, -1]))
@example(base=0, off=0)
@example(base=1, off=0)
@example(base=2**256 - 1, off=0)
def test_inverses_modulo_primes_of_curves(prime: int, base: int, off: int) -> None:
    for number in (base, prime - base % prime, base * prime % 2**256):
        exponent = prime - 2 + off
        ok, output, _ = run(0x05, call(*map(word, (number, exponent, prime))), GENEROUS)
        assert ok
        assert output == word(pow(number, exponent, prime))
