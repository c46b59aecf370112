"""Tests JSON text against Python's encoder and decoder."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fastevm.rpc_types.text.json_writer import json_of_bytes, json_of_quantity, json_of_text
from fastevm.testing.primitives import json_appended


@given(st.binary(max_size=200))
@example(bytes(range(256)))
def test_bytes_become_hex_of_any_length(data: bytes) -> None:
    assert json_of_bytes(data) == f'"0x{data.hex()}"'.encode()


@given(st.integers(0, 256).flatmap(lambda bits: st.integers(0, 2**bits - 1)))
@example(0)
@example(2**64 - 1)
@example(2**64)
@example(2**256 - 1)
def test_a_quantity_has_no_leading_zeros(number: int) -> None:
    assert json_of_quantity(number) == json.dumps(hex(number)).encode()


@pytest.mark.parametrize("number", [-1, 2**256])
def test_a_number_that_is_no_word_is_refused(number: int) -> None:
    with pytest.raises(OverflowError):
        json_of_quantity(number)


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=60))
@example('quotes " and \\ and \x00\x08\t\n\x0c\r\x1f\x7f')
@example("é € 😀 \ud7ff\ue000\U0010ffff")
def test_text_is_read_back_as_it_was(text: str) -> None:
    written = json_of_text(text)
    assert json.loads(written) == text
    assert len(written) <= len(json.dumps(text, ensure_ascii=False).encode())


@given(st.binary(max_size=40))
@example(b"\xc0\x80 overlong, \xe0\x9f\xbf, \xf0\x8f\xbf\xbf")
@example(b"\xed\xa0\x80 a surrogate, beyond the end \xf4\x90\x80\x80 \xf5\xff")
@example(b"cut: \xf0\x9f\x98")
@example(b"cut: \xe2\x82")
@example(b"cut: \xe2")
@example(b"not followed: \xe2\x82x \xf0\x9f\x98x \xc3x")
def test_what_is_no_utf8_is_replaced_as_python_does(data: bytes) -> None:
    assert json.loads(json_of_text(data)) == data.decode("utf-8", "replace")


@given(
    st.lists(
        st.one_of(
            st.booleans(),
            st.integers(0, 2**64 - 1),
            st.binary(max_size=70),
            st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=20),
        ),
        max_size=40,
    )
)
@example([0, 2**64 - 1, b"x" * 1000, "y" * 1000, True, False])
def test_pieces_follow_each_other_in_one_growing_text(
    values: list[bool | int | bytes | str],
) -> None:
    expected: list[object] = []
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | bytes):
            expected.append(value)
        elif isinstance(value, int):
            expected += [value, hex(value), f"0x{value:064x}"]
        else:
            expected.append("0x" + value.hex())
    written = json_appended(values)
    assert json.loads(written) == expected
    assert written == json.dumps(expected, ensure_ascii=False, separators=(",", ":")).encode()


def test_text_that_does_not_fit_into_memory_is_an_error() -> None:
    with pytest.raises(MemoryError):
        json_appended([b"some", "text"], starve=True)
