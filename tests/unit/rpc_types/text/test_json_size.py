"""Tests the counted items and values of JSON text against the parser, also for invalid JSON."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastevm.rpc_types.text.json_size import measure

ANY: Any = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from(['"', '\\"', "[,]"]),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=20,
)


def count(value: Any) -> int:
    """Returns how many commas and opening brackets the JSON text of a value has."""
    if isinstance(value, dict):
        return 1 + max(len(value) - 1, 0) + sum(map(count, value.values()))
    if isinstance(value, list):
        return 1 + max(len(value) - 1, 0) + sum(map(count, value))
    return 0


@given(ANY, st.sampled_from([None, 1]))
def test_items_and_values_are_those_of_the_parser(value: Any, indent: int | None) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    items, values, end = measure(f" {text}\n".encode(), items=1_000, values=1_000)
    assert items == (len(value) if isinstance(value, list) else 0)
    assert values == count(value)
    if items:
        first = f" {text}".encode()[2:end]
        assert json.loads(first) == value[0]


@pytest.mark.parametrize("text", [b"[" + b"1," * 5_000_000, b"[" * 100_000, b"{" * 100_000])
def test_counting_stops_at_the_limits(text: bytes) -> None:
    items, values, _ = measure(text, items=1_000, values=5_000)
    assert items <= 1_001 and values <= 5_001


@given(st.binary(max_size=60) | st.text('[]{},:"\\ 1', max_size=60).map(str.encode))
def test_what_is_no_json_is_measured_too(text: bytes) -> None:
    items, values, end = measure(text, items=10, values=10)
    assert items <= 11 and values <= 11 and end <= len(text)
