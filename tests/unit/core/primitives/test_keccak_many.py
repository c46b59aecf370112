"""Tests Keccak-256 of many messages against Keccak-256 of each message, on all vector units."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastevm.core.primitives import keccak
from fastevm.core.primitives.keccak import keccak256, keccak256_all, use_lanes
from fastevm.core.primitives.processor import IN_USE, REPLACED

LANES = [0, 4, 8]


@pytest.fixture(autouse=True)
def all_lanes() -> Iterator[None]:
    yield
    use_lanes()


def check(messages: list[bytes], lanes: int) -> None:
    use_lanes(lanes)
    assert keccak256_all(messages) == [keccak256(message) for message in messages]


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 7, 8, 9, 17, 64])
def test_any_number_of_messages(count: int, lanes: int) -> None:
    check([os.urandom(32) for _ in range(count)], lanes)


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("size", [0, 1, 135, 136, 137, 271, 272, 273, 532])
def test_sizes_around_the_rate(size: int, lanes: int) -> None:
    check([os.urandom(size) for _ in range(11)], lanes)


@pytest.mark.parametrize("lanes", LANES)
@given(messages=st.lists(st.binary(max_size=700), max_size=40))
def test_messages_of_different_sizes(messages: list[bytes], lanes: int) -> None:
    check(messages, lanes)


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("rest", [0, 1, 135, 136, 137, 1_500])
@pytest.mark.parametrize("count", [2, 5, 8, 9, 11])
def test_the_longest_message_ends_alone(count: int, rest: int, lanes: int) -> None:
    for at in (0, count // 2, count - 1):
        sizes = [200 + 1_360 + rest if item == at else 200 for item in range(count)]
        check([os.urandom(size) for size in sizes], lanes)


def test_fewer_lanes_than_asked_for_where_the_processor_has_no_more() -> None:
    assert use_lanes(0) == 0
    assert use_lanes(4) in (0, 4)
    assert use_lanes() in (0, 4, 8)


def test_lanes_that_answer_wrongly_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keccak, "keccak256_all", lambda messages: [])
    try:
        keccak.choose_code()  # type: ignore[attr-defined]
        assert IN_USE["keccak256 of many"] == "one after the other"
        assert "keccak256 of many" in REPLACED and "keccak256" not in REPLACED
    finally:
        monkeypatch.undo()
        REPLACED.clear()
        keccak.choose_code()  # type: ignore[attr-defined]
    check([os.urandom(32) for _ in range(9)], lanes=8)
