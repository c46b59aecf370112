"""Tests arithmetic, comparison and bit opcodes against Python's integers."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastevm.testing.interpreter import BareMachine

from .programs import MAIN, WORD, asm, returning

EDGES = [0, 1, 2, 31, 32, 255, 256, (1 << 64) - 1, 1 << 64, (1 << 255) - 1, 1 << 255, WORD - 1]
WORDS = st.one_of(st.sampled_from(EDGES), st.integers(0, WORD - 1), st.integers(0, 1 << 64))


def signed(x: int) -> int:
    return x - WORD if x >> 255 else x


def truncated(a: int, b: int) -> tuple[int, int]:
    """Returns quotient and remainder. The quotient is rounded towards zero."""
    quotient = abs(a) // abs(b) * (1 if a * b >= 0 else -1)
    return quotient, a - quotient * b


def sign_extended(k: int, x: int) -> int:
    if k > 30:
        return x
    bits = 8 * k + 8
    low = x & ((1 << bits) - 1)
    return low - (1 << bits) if low >> (bits - 1) else low


MODELS: dict[str, Callable[..., int]] = {
    "ADD": lambda a, b: a + b,
    "MUL": lambda a, b: a * b,
    "SUB": lambda a, b: a - b,
    "DIV": lambda a, b: a // b if b else 0,
    "SDIV": lambda a, b: truncated(signed(a), signed(b))[0] if b else 0,
    "MOD": lambda a, b: a % b if b else 0,
    "SMOD": lambda a, b: truncated(signed(a), signed(b))[1] if b else 0,
    "ADDMOD": lambda a, b, n: (a + b) % n if n else 0,
    "MULMOD": lambda a, b, n: (a * b) % n if n else 0,
    "EXP": lambda a, b: pow(a, b, WORD),
    "SIGNEXTEND": sign_extended,
    "LT": lambda a, b: a < b,
    "GT": lambda a, b: a > b,
    "SLT": lambda a, b: signed(a) < signed(b),
    "SGT": lambda a, b: signed(a) > signed(b),
    "EQ": lambda a, b: a == b,
    "ISZERO": lambda a: a == 0,
    "AND": lambda a, b: a & b,
    "OR": lambda a, b: a | b,
    "XOR": lambda a, b: a ^ b,
    "NOT": lambda a: ~a,
    "BYTE": lambda i, x: x.to_bytes(32, "big")[i] if i < 32 else 0,
    "SHL": lambda s, x: x << s if s < 256 else 0,
    "SHR": lambda s, x: x >> s if s < 256 else 0,
    "SAR": lambda s, x: signed(x) >> min(s, 256),
    "CLZ": lambda x: 256 - x.bit_length(),
}


@pytest.mark.parametrize("mnemonic", MODELS)
@settings(max_examples=60)
@given(words=st.tuples(WORDS, WORDS, WORDS))
def test_an_op_computes_what_the_model_says(mnemonic: str, words: tuple[int, int, int]) -> None:
    model = MODELS[mnemonic]
    operands = words[: model.__code__.co_argcount]
    code = returning(*reversed(operands), mnemonic)
    outcome = BareMachine("osaka", {MAIN: {"code": code}}).call(MAIN)
    assert int.from_bytes(outcome.output, "big") == int(model(*operands)) % WORD


@pytest.mark.parametrize(("exponent", "size"), [(0, 0), (1, 1), (255, 1), (256, 2), (WORD - 1, 32)])
@pytest.mark.parametrize(("fork", "price"), [("homestead", 10), ("osaka", 50)])
def test_exp_pays_for_each_byte_of_the_exponent(
    exponent: int, size: int, fork: str, price: int
) -> None:
    code = asm(exponent, 3, "EXP")
    outcome = BareMachine(fork, {MAIN: {"code": code}}).call(MAIN, gas=10_000)
    assert 10_000 - outcome.gas_left == 6 + 10 + price * size


@pytest.mark.parametrize("size", range(1, 33))
def test_push_takes_its_bytes_and_zeros_past_the_end_of_code(size: int) -> None:
    data = bytes(range(1, size + 1))
    full = bytes([0x5F + size]) + data + asm(0, "MSTORE", 32, 0, "RETURN")
    outcome = BareMachine("osaka", {MAIN: {"code": full}}).call(MAIN)
    assert outcome.output == data.rjust(32, b"\0")
    cut = BareMachine("osaka", {MAIN: {"code": bytes([0x5F + size]) + data[:-1]}}).call(MAIN, gas=3)
    assert (cut.status, cut.gas_left) == (1, 0)


@pytest.mark.parametrize("n", range(1, 17))
def test_dup_copies_and_swap_exchanges_the_nth_word(n: int) -> None:
    items = list(range(100, 117))
    duplicated = returning(*items, f"DUP{n}")
    assert output(duplicated) == items[-n]
    swapped = returning(*items, f"SWAP{n}")
    assert output(swapped) == items[-1 - n]
    below = returning(*items, f"SWAP{n}", "POP " * n)
    assert output(below) == items[-1]


def output(code: bytes) -> int:
    return int.from_bytes(BareMachine("osaka", {MAIN: {"code": code}}).call(MAIN).output, "big")
