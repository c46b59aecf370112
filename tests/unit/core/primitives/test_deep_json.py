"""Tests JSON that is nested deeper than Python's recursion limit."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastevm.core.primitives.deep_json import decode_json, decode_with_stack

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text() | st.floats(-1e9, 1e9),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)


@given(VALUES, st.sampled_from([None, 2]))
def test_both_decoders_agree(value: Any, indent: int | None) -> None:
    text = json.dumps(value, indent=indent).encode()
    assert decode_with_stack(text) == msgspec.json.decode(text) == value


@pytest.mark.parametrize(
    ("decode", "depth"),
    [(decode_json, 10), (decode_json, 1_100), (decode_with_stack, 10), (decode_with_stack, 50_000)],
)
def test_values_may_be_deep(decode: Callable[[bytes], Any], depth: int) -> None:
    text = b'{"calls":[' * depth + b'{"a":"]}\\"[{"}' + b"]}" * depth
    value = decode(text)
    for _ in range(depth):
        (value,) = value["calls"]
    assert value == {"a": ']}"[{'}


@pytest.mark.parametrize("text", [b"[" * 5000, b"[" * 5000 + b"]" * 5001, b""])
def test_text_that_is_not_json_is_an_error(text: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_with_stack(text)
