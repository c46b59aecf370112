"""Tests the codec of the contract ABI against eth-abi."""

import math
from decimal import Decimal
from typing import Any

import pytest
from eth_abi import abi as oracle
from eth_abi.exceptions import DecodingError, InvalidPointer
from hypothesis import assume, given
from hypothesis import strategies as st

from fastevm.evm.contracts.codec import (
    AbiDecodingError,
    AbiEncodingError,
    AbiType,
    AbiTypeError,
    decode_values,
    encode_values,
)

LEAVES = ("uint256", "uint64", "uint8", "int256", "int64", "int24", "bool", "address", "bytes32",
          "bytes4", "bytes", "string", "function")  # fmt: skip


def value_of(kind: str) -> st.SearchStrategy[Any]:
    if kind.startswith("uint"):
        return st.integers(0, 2 ** int(kind[4:]) - 1)
    if kind.startswith("int"):
        half = 2 ** (int(kind[3:]) - 1)
        return st.integers(-half, half - 1)
    if kind == "address":
        return st.binary(min_size=20, max_size=20)
    if kind == "function":
        return st.binary(min_size=24, max_size=24)
    if kind.startswith("bytes") and kind != "bytes":
        return st.binary(min_size=int(kind[5:]), max_size=int(kind[5:]))
    simple = {
        "bool": st.booleans(),
        "bytes": st.binary(max_size=70),
        "string": st.text(max_size=40),
    }
    return simple[kind]


@st.composite
def typed(draw: st.DrawFn, depth: int = 3) -> tuple[AbiType, str, Any]:
    """Draws a compiled type, its name, and a value."""
    form = draw(st.sampled_from(["leaf", "tuple", "list", "fixed list"])) if depth else "leaf"
    if form == "leaf":
        name = draw(st.sampled_from(LEAVES))
        return AbiType(name), name, draw(value_of(name))
    if form == "tuple":
        parts = draw(st.lists(typed(depth - 1), min_size=1, max_size=3))
        kind = AbiType("tuple", [(f"m{at}", part[0]) for at, part in enumerate(parts)])
        return kind, f"({','.join(part[1] for part in parts)})", tuple(part[2] for part in parts)
    kind, name, value = draw(typed(depth - 1))
    assume("(" not in name)  # only an ABI can describe lists of tuples
    count = draw(st.integers(0 if form == "list" else 1, 3))
    suffix = f"[{count if form == 'fixed list' else ''}]"
    return AbiType(name + suffix), name + suffix, [value] * count


def shaped(value: Any) -> Any:
    """Returns a value in eth-abi's form: lists are tuples, addresses are lower-case."""
    if isinstance(value, list | tuple):
        return tuple(shaped(item) for item in value)
    return value.lower() if isinstance(value, str) and value[:2] == "0x" else value


@given(st.lists(typed(), max_size=4))
def test_both_codecs_agree(parts: list[tuple[AbiType, str, Any]]) -> None:
    whole = AbiType("tuple", [("", part[0]) for part in parts])
    names, values = [part[1] for part in parts], [part[2] for part in parts]
    data = encode_values(whole, values)
    assert data == oracle.encode(names, values)
    assert whole.name == f"({','.join(names)})"
    decoded, expected = decode_values(whole, data), oracle.decode(names, data)
    assert shaped(decoded) == shaped(expected)


@given(st.lists(typed(), min_size=1, max_size=3), st.data())
def test_both_refuse_the_same_data(parts: list[tuple[AbiType, str, Any]], draw: Any) -> None:
    whole = AbiType("tuple", [("", part[0]) for part in parts])
    names = [part[1] for part in parts]
    data = bytearray(encode_values(whole, [part[2] for part in parts]))
    assume(data)
    at = draw.draw(st.integers(0, len(data) - 1))
    data[at] ^= draw.draw(st.integers(1, 255))
    if draw.draw(st.booleans()):
        del data[draw.draw(st.integers(0, len(data))) :]
    try:
        expected = oracle.decode(names, bytes(data))
    except InvalidPointer:
        return
    except (DecodingError, UnicodeDecodeError, OverflowError):
        expected = None
    try:
        found = decode_values(whole, data)
    except AbiDecodingError:
        return
    assert expected is not None and shaped(found) == shaped(expected)


def test_fixed_point_numbers() -> None:
    kind = AbiType("tuple", [("", AbiType("fixed64x2")), ("", AbiType("ufixed8x1"))])
    values = [Decimal("-1.25"), Decimal("0.5")]
    data = encode_values(kind, values)
    assert data == oracle.encode(["fixed64x2", "ufixed8x1"], values)
    assert list(decode_values(kind, data)) == values
    with pytest.raises(AbiEncodingError, match="decimal places"):
        encode_values(kind, [Decimal("0.001"), 0])
    for wrong in (Decimal("nan"), math.pi, "1"):
        with pytest.raises(AbiEncodingError):
            encode_values(kind, [wrong, 0])


@pytest.mark.parametrize(("kind", "value", "words"), [
    ("uint8", 256, "uint8: expected 0 to 2\\*\\*8 - 1, found 256"),
    ("uint64", 2**64, "expected 0 to"), ("uint256", -1, "expected 0 to"),
    ("int8", 128, "expected -2\\*\\*7 to"), ("int64", 2**63, "expected -2"), ("int8", -129, "-129"),
    ("uint8", True, "an int"), ("uint8", 1.0, "an int"), ("uint8", "1", "an int"),
    ("bool", 1, "a bool"), ("address", "0x12", "20 bytes"), ("address", 5, "found int"),
    ("bytes4", b"12345", "at most 4 bytes"), ("bytes", 5, "found int"), ("string", 5, "text"),
    ("uint8[2]", [1], "2 items"), ("uint8[]", "ab", "a sequence"), ("uint8[]", [1, 300], r"\[1\]"),
])  # fmt: skip
def test_a_wrong_value_is_named(kind: str, value: Any, words: str) -> None:
    with pytest.raises(AbiEncodingError, match=words) as found:
        encode_values(AbiType("tuple", [("amount", AbiType(kind))]), [value])
    assert str(found.value).startswith("amount: ")


@pytest.mark.parametrize("text", [
    "", "uint7", "uint0", "uint264", "bytes0", "bytes33", "string8", "fixed8", "uint8x1", "int8[",
    "tuple8", "uint256]", "adress",
])  # fmt: skip
def test_unknown_types_are_refused(text: str) -> None:
    with pytest.raises(AbiTypeError):
        AbiType(text)


def test_data_that_means_too_much_is_refused() -> None:
    kind = AbiType("uint8[][][][][][][][][][]")
    level = (8).to_bytes(32, "big") + (8 * 32).to_bytes(32, "big") * 8
    shared = (0x20).to_bytes(32, "big") + level * 9 + (8).to_bytes(32, "big") + bytes(32) * 8
    for head in (shared, (2**255).to_bytes(32, "big") * 9, bytes(31) + b"\x20" + b"\xff" * 64):
        with pytest.raises(AbiDecodingError):
            decode_values(AbiType("tuple", [("", kind)]), head)
    empty = AbiType("uint8[0][]")
    huge = (0x20).to_bytes(32, "big") + (10**6).to_bytes(32, "big")
    with pytest.raises(AbiDecodingError):
        decode_values(AbiType("tuple", [("", empty)]), huge)


@pytest.mark.parametrize(
    "text",
    [
        "uint256" + "[]" * 50_000,
        "uint256" + "[1]" * 65,
        "uint256[99999999999999999999]",
        "uint256" + "[999999]" * 4,  # the size in bytes exceeds 64 bits
        "()[99999999999]".replace("()", "tuple"),
        "uint٨",  # a digit of another script
        "uint08",
        "uint" + "9" * 5_000,
        "fixed128x81",
    ],
)
def test_a_type_that_is_too_large_or_does_not_exist_is_refused(text: str) -> None:
    with pytest.raises(AbiTypeError) as fault:
        AbiType(text)
    assert len(str(fault.value)) < 150


def test_a_tuple_that_is_too_deep_or_too_large_is_refused() -> None:
    kind = AbiType("uint256")
    with pytest.raises(AbiTypeError, match="more than 64 levels"):
        for _ in range(65):
            kind = AbiType("tuple", [("", kind)])
    part = AbiType("uint256[30000000]")
    with pytest.raises(AbiTypeError, match="more than 1073741824"):
        AbiType("tuple", [("", part)] * 2)


@pytest.mark.parametrize("kind", ["bytes[]", "string[]", "tuple[]"])
def test_data_whose_offsets_repeat_long_values_are_refused(kind: str) -> None:
    """All offsets refer to one value of 32 kB, so 64 kB of data would decode to 32 MB."""
    count, size = 1_000, 32_000
    words = [32, count, *([32 * count] * count)]
    data = b"".join(word.to_bytes(32) for word in words)
    if kind == "tuple[]":
        data += (32).to_bytes(32)
    data += size.to_bytes(32) + b"a" * size
    types = AbiType("tuple", [("", AbiType(kind, [("", AbiType("bytes"))]))])
    with pytest.raises(AbiDecodingError, match="refers to itself too often"):
        decode_values(types, data)
