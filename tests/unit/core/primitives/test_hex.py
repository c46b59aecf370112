"""Tests hex text against Python's codec, JSON-RPC quantities, and errors for invalid text."""

import pytest
from eth_utils import to_checksum_address
from hypothesis import given
from hypothesis import strategies as st

from fastevm.core.primitives.hex import checksum_address, from_hex, hex_bytes, hex_word, quantity
from fastevm.testing.primitives import hex_appended


@given(st.binary(max_size=300))
def test_bytes_become_lower_case_hex_and_come_back(data: bytes) -> None:
    text = hex_bytes(data)
    assert text == "0x" + data.hex()
    assert from_hex(text) == data
    assert from_hex(text.upper()) == data


def test_every_pair_of_digits() -> None:
    digits = "0123456789abcdefABCDEF"
    for high in digits:
        for low in digits:
            assert from_hex(f"0x{high}{low}") == bytes([int(high + low, 16)])


def test_long_text_is_refused_for_a_single_wrong_character_wherever_it_is() -> None:
    right = bytes(range(0x30, 0x56))  # more than two blocks of the vector code
    text = right.hex()
    for position in range(len(text)):
        for character in map(chr, range(128)):
            changed = "0x" + text[:position] + character + text[position + 1 :]
            if character in "0123456789abcdefABCDEF":
                assert from_hex(changed) == bytes.fromhex(changed[2:])
            else:
                with pytest.raises(ValueError, match=f"at position {position + 2}"):
                    from_hex(changed)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "without 0x"),
        ("0", "without 0x"),
        ("abcd", "without 0x"),
        ("0x1", "odd length"),
        ("0x0g", "'g' at position 3"),
        ("0x 0", "' ' at position 2"),
        ("0x+1", "at position 2"),
        ("0x1é", "'é' at position 3"),
        ("0xéé", "'é' at position 2"),
        ("0x1\x002", "odd length"),
        ("0x1\x00", "at position 3"),
        ("0x0\ud800", "at position 3"),
    ],
)
def test_what_is_no_hex_is_refused_with_its_reason(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        from_hex(text)


@given(st.text(max_size=6))
def test_text_is_decoded_exactly_when_python_would(rest: str) -> None:
    valid = len(rest) % 2 == 0 and all(c in "0123456789abcdefABCDEF" for c in rest)
    if valid:
        assert from_hex("0x" + rest) == bytes.fromhex(rest)
    else:
        with pytest.raises(ValueError):
            from_hex("0x" + rest)


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(TypeError):
        from_hex(b"0x00")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        hex_bytes("0x00")  # type: ignore[arg-type]


@given(st.integers(0, 2**256 - 1))
def test_a_quantity_has_no_leading_zeros(number: int) -> None:
    assert quantity(number) == hex(number)


def test_a_quantity_has_no_sign() -> None:
    with pytest.raises(ValueError):
        quantity(-1)


@given(st.integers(0, 2**256 - 1))
def test_a_word_has_all_its_digits(number: int) -> None:
    assert hex_word(number) == f"0x{number:064x}"


@pytest.mark.parametrize("number", [-1, 2**256])
def test_a_number_of_more_than_256_bits_is_no_word(number: int) -> None:
    with pytest.raises(OverflowError):
        hex_word(number)


@given(st.binary(min_size=20, max_size=20))
def test_an_address_has_the_checksum_of_eip_55(address: bytes) -> None:
    assert checksum_address(address) == to_checksum_address(address)


@pytest.mark.parametrize("size", [0, 19, 21])
def test_only_twenty_bytes_are_an_address(size: int) -> None:
    with pytest.raises(ValueError, match="20 bytes"):
        checksum_address(bytes(size))


@given(
    st.binary(max_size=100),
    st.integers(0, 256).flatmap(lambda bits: st.integers(0, 2**bits - 1)),
)
def test_text_is_appended_to_a_buffer(data: bytes, number: int) -> None:
    expected = hex_bytes(data) + hex(number) + hex(number % 2**64)
    assert hex_appended(data, number) == expected.encode()
