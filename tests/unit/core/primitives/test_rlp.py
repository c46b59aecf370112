"""Tests RLP against the package rlp. Non-canonical and too deep encodings are rejected."""

from typing import Any

import pytest
import rlp as reference
from hypothesis import given, settings
from hypothesis import strategies as st
from rlp.exceptions import DecodingError

from fastevm.core.primitives import rlp
from fastevm.testing.primitives import rlp_read, rlp_written

strings = st.one_of(st.binary(max_size=3), st.binary(min_size=50, max_size=60), st.just(b"x" * 300))
values = st.recursive(strings, lambda inner: st.lists(inner, max_size=5), max_leaves=30)


@given(values)
def test_values_are_encoded_and_come_back(value: Any) -> None:
    encoded = rlp.encode(value)
    assert encoded == reference.encode(value)
    assert rlp.decode(encoded) == value


@pytest.mark.parametrize("size", [0, 1, 54, 55, 56, 255, 256, 65535, 65536])
def test_sizes_around_each_form_of_header(size: int) -> None:
    for value in (b"a" * size, [b"a"] * size):
        encoded = rlp.encode(value)
        assert encoded == reference.encode(value)
        assert rlp.decode(encoded) == value


@given(st.integers(0, 2**300))
def test_integers_have_no_leading_zeros(number: int) -> None:
    encoded = rlp.encode(number)
    assert encoded == reference.encode(number)
    assert rlp.decode_int(rlp.decode(encoded)) == number  # type: ignore[arg-type]


def accepted_by_reference(data: bytes) -> bool:
    try:
        return bool(reference.encode(reference.decode(data)) == data)
    except (DecodingError, IndexError):
        return False


@settings(max_examples=400)
@given(
    st.one_of(
        st.binary(max_size=12),
        st.tuples(st.sampled_from([0x81, 0xB7, 0xB8, 0xB9, 0xBF, 0xC1, 0xF7, 0xF8, 0xF9, 0xFF]))
        .map(bytes)
        .flatmap(lambda head: st.binary(max_size=80).map(lambda tail: head + tail)),
        values.map(rlp.encode).flatmap(
            lambda good: st.integers(0, len(good) - 1).map(
                lambda i: good[:i] + bytes([good[i] ^ 1]) + good[i + 1 :]
            )
        ),
    )
)
def test_bytes_are_accepted_exactly_when_they_are_canonical(data: bytes) -> None:
    try:
        value = rlp.decode(data)
    except rlp.RlpError:
        assert not accepted_by_reference(data)
    else:
        assert accepted_by_reference(data)
        assert rlp.encode(value) == data


@pytest.mark.parametrize(
    ("encoded", "reason", "offset"),
    [
        ("", "missing", 0),
        ("8100", "needless header", 0),
        ("817f", "needless header", 0),
        ("c28100", "needless header", 1),
        ("83aabb", "longer than", 0),
        ("c180ff", "bytes after", 2),
        ("c1", "longer than", 0),
        ("c281", "longer than", 0),
        ("c181", "longer than", 1),
        ("b800", "leading zero", 0),
        ("b90001", "leading zero", 0),
        ("b9", "cut short", 0),
        ("b837" + "00" * 55, "long length", 0),
        ("f837" + "80" * 55, "long length", 0),
        ("f838" + "80" * 55, "longer than", 0),
        ("bfffffffffffffffff", "longer than", 0),
        ("ffffffffffffffffff", "longer than", 0),
    ],
)
def test_the_reason_and_the_place_of_an_error_are_reported(
    encoded: str, reason: str, offset: int
) -> None:
    with pytest.raises(rlp.RlpError, match=reason) as caught:
        rlp.decode(bytes.fromhex(encoded))
    assert caught.value.offset == offset


def nested(depth: int) -> bytes:
    """Returns the encoding of ``depth`` nested lists."""
    encoded = b""
    for _ in range(depth):
        size = len(encoded)
        width = (size.bit_length() + 7) // 8
        head = [0xC0 + size] if size <= 55 else [0xF7 + width, *size.to_bytes(width, "big")]
        encoded = bytes(head) + encoded
    return encoded


def test_nesting_has_a_limit_and_does_not_crash() -> None:
    assert rlp.encode(rlp.decode(nested(rlp.MAX_DEPTH))) == nested(rlp.MAX_DEPTH)
    for depth in (rlp.MAX_DEPTH + 1, 20_000):
        with pytest.raises(rlp.RlpError, match="nested deeper"):
            rlp.decode(nested(depth))
    deep = rlp.decode(nested(rlp.MAX_DEPTH))
    with pytest.raises(rlp.RlpError, match="nested deeper"):
        rlp.encode([deep])


def test_a_list_that_holds_itself_does_not_crash() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(rlp.RlpError, match="nested deeper"):
        rlp.encode(loop)


@pytest.mark.parametrize("value", ["text", None, 1.5, True, [None], {}])
def test_other_types_are_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        rlp.encode(value)


def test_a_negative_integer_is_refused() -> None:
    with pytest.raises(rlp.RlpError, match="negative"):
        rlp.encode(-1)


def test_an_integer_with_a_leading_zero_is_refused() -> None:
    with pytest.raises(rlp.RlpError, match="leading zero"):
        rlp.decode_int(b"\0\1")


# --- the C level ---


@given(
    st.lists(st.integers(0, 256).flatmap(lambda n: st.integers(0, 2**n - 1)), max_size=8),
    st.lists(strings, max_size=8),
)
def test_the_appending_encoder(numbers: list[int], texts: list[bytes]) -> None:
    encoded, size = rlp_written(numbers, texts)
    assert encoded == reference.encode([*numbers, texts])
    assert size == len(encoded)


@given(
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**256 - 1),
    st.binary(min_size=20, max_size=20),
    strings,
    values,
    st.lists(strings, max_size=4),
)
def test_the_walking_decoder(
    small: int, word: int, fixed: bytes, text: bytes, anything: Any, inner: list[bytes]
) -> None:
    encoded = rlp.encode([small, word, fixed, text, anything, inner, inner])
    expected = [small, word, fixed, text, rlp.encode(anything), len(inner), len(inner)]
    assert rlp_read(encoded, "uwabrln") == expected
    assert rlp_read(encoded, "uwabrl") is None
    assert rlp_read(encoded, "uwabrlnn") is None
    assert rlp_read(encoded + b"\0", "uwabrln") is None


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (2**64, "u"),
        (2**256, "w"),
        (b"\0", "u"),
        (b"\0\1", "u"),
        (b"\0" + b"\1" * 31, "w"),
        (b"x" * 19, "a"),
        (b"x" * 21, "a"),
        ([b"x" * 20], "a"),
        ([], "u"),
        ([], "w"),
        ([], "b"),
        (b"", "n"),
    ],
)
def test_the_walking_decoder_refuses_other_meanings(value: Any, kind: str) -> None:
    assert rlp_read(rlp.encode([value]), kind) is None


def test_a_malformed_inner_list_is_not_counted() -> None:
    assert rlp_read(bytes.fromhex("c3c28100"), "l") == [-1]
    assert rlp_read(bytes.fromhex("c3c28100"), "n") is None
    assert rlp_read(bytes.fromhex("c180"), "l") == [-1]


def test_what_is_no_list_is_not_walked() -> None:
    assert rlp_read(b"\x80", "") is None
    assert rlp_read(b"", "") is None
    assert rlp_read(b"\xc0", "") == []
