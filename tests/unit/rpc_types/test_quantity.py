"""Tests hexadecimal values: accepted forms, and the error for all other forms."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastevm.rpc_types.quantity import (
    DecodeError,
    decode_address,
    decode_bool,
    decode_bytes,
    decode_hash,
    decode_storage_slot,
    decode_uint64,
    decode_uint256,
    parse_quantity,
)


def reason(decode: Callable[..., Any], value: Any, **options: Any) -> str:
    with pytest.raises(DecodeError) as caught:
        decode(value, **options)
    return str(caught.value)


@given(st.integers(0, 2**64 - 1))
def test_a_quantity_of_64_bits_is_read(number: int) -> None:
    assert decode_uint64(hex(number)) == number
    assert decode_uint256(hex(number).upper().replace("X", "x")) == number


@given(st.integers(2**64, 2**256 - 1))
def test_a_wider_quantity_needs_the_wider_type(number: int) -> None:
    assert decode_uint256(hex(number)) == number
    assert "hex number > 64 bits" in reason(decode_uint64, hex(number))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty hex string"),
        ("5", "hex string without 0x prefix"),
        ("0x", 'hex string "0x"'),
        ("0x01", "hex number with leading zero digits"),
        ("0xg", "invalid hex string"),
        ("0x-1", "invalid hex string"),
        ("0x1_0", "invalid hex string"),
        ("0x" + "1" * 17, "hex number > 64 bits"),
    ],
)
def test_a_bad_quantity_has_its_reason(text: str, why: str) -> None:
    assert reason(parse_quantity, text) == why
    assert reason(decode_uint64, text) == (
        f"json: cannot unmarshal {why} into Go value of type hexutil.Uint64"
    )


def test_a_quantity_over_256_bits_is_refused() -> None:
    assert "hex number > 256 bits" in reason(decode_uint256, "0x1" + "0" * 64)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (5, "json: cannot unmarshal non-string into Go value of type common.Address"),
        (None, "json: cannot unmarshal non-string into Go value of type common.Address"),
        (
            "00" * 20,
            "json: cannot unmarshal hex string without 0x prefix into Go value"
            " of type common.Address",
        ),
        (
            "0x" + "1" * 39,
            "json: cannot unmarshal hex string of odd length into Go value of type common.Address",
        ),
        ("0x" + "1" * 38, "hex string has length 38, want 40 for common.Address"),
        ("", "hex string has length 0, want 40 for common.Address"),
        (
            "0x" + "zz" * 20,
            "json: cannot unmarshal invalid hex string into Go value of type common.Address",
        ),
        (
            "0x" + "11" * 19 + "  ",
            "json: cannot unmarshal invalid hex string into Go value of type common.Address",
        ),
    ],
)
def test_a_bad_address_has_its_reason(value: Any, why: str) -> None:
    assert reason(decode_address, value) == why


def test_a_place_inside_an_object_is_named() -> None:
    assert reason(decode_address, "11", field="TransactionArgs.to") == (
        "json: cannot unmarshal hex string without 0x prefix into Go struct field"
        " TransactionArgs.to of type common.Address"
    )


@given(st.binary(min_size=32, max_size=32))
def test_a_hash_is_32_bytes_in_any_case(raw: bytes) -> None:
    assert decode_hash("0x" + raw.hex()) == decode_hash("0X" + raw.hex().upper()) == raw
    assert decode_bytes("0x" + raw.hex()) == raw


@given(st.binary(max_size=100))
def test_bytes_of_any_length_are_read(raw: bytes) -> None:
    assert decode_bytes("0x" + raw.hex()) == raw


@pytest.mark.parametrize("text", ["0x1", "0xgg", "11", "0x é", "0x1 1 "])
def test_bad_bytes_are_refused(text: str) -> None:
    assert reason(decode_bytes, text).endswith("hexutil.Bytes")


@pytest.mark.parametrize("value", [1, "true", None, []])
def test_only_true_and_false_are_booleans(value: Any) -> None:
    assert reason(decode_bool, value).endswith("bool")


@pytest.mark.parametrize(
    ("text", "slot", "size"),
    [
        ("0x0", 0, 1),
        ("0x", 0, 0),
        ("", 0, 0),
        ("a", 10, 1),
        ("0X0A", 10, 1),
        ("0x" + "0" * 63 + "1", 1, 32),
    ],
)
def test_a_storage_key_is_read_leniently(text: str, slot: int, size: int) -> None:
    assert decode_storage_slot(text) == (slot, size)


def test_a_bad_storage_key_has_its_reason() -> None:
    assert reason(decode_storage_slot, "0xasdf") == 'invalid hex in storage key: "0xasdf"'
    assert reason(decode_storage_slot, "0x" + "1" * 66).startswith(
        "storage key too long (want at most 32 bytes)"
    )
    assert len(reason(decode_storage_slot, "z" * 10_000_000)) < 1000
