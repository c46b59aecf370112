"""Tests the table of header fields, and the draft headers that are made from it."""

import pytest

from fastevm.core.execution.block.header_draft import draft_header, later_fields
from fastevm.core.execution.types import (
    HEADER_FIELDS,
    HEADER_SIZES,
    JSON_FIELDS,
    LATER_FIELDS,
    Header,
)
from fastevm.core.spec.schedule import schedule_for

SIZES = {
    "frontier": 15,
    "london": 16,
    "shanghai": 17,
    "cancun": 20,
    "prague": 21,
    "osaka": 21,
    "amsterdam": 23,
}


def test_headers_have_the_sizes_of_the_forks() -> None:
    assert HEADER_SIZES == (15, 16, 17, 20, 21, 23)
    assert [row.name for row in HEADER_FIELDS] == list(Header.__struct_fields__)
    assert sorted(JSON_FIELDS) == sorted(HEADER_FIELDS)


@pytest.mark.parametrize(("fork", "size"), SIZES.items())
def test_a_draft_has_the_fields_of_its_fork(fork: str, size: int) -> None:
    schedule = schedule_for(fork)
    draft = draft_header(Header(gas_limit=30_000_000), schedule, timestamp=1)
    assert [name for name in Header.__struct_fields__ if getattr(draft, name) is not None] == [
        row.name for row in HEADER_FIELDS[:size]
    ]
    assert Header.decode(draft.rlp()) == draft


def test_the_slot_is_one_more_than_the_parents_unless_it_is_given() -> None:
    schedule = schedule_for("amsterdam")
    assert later_fields(schedule, {}, Header(slot_number=7))["slot_number"] == 8
    assert later_fields(schedule, {"slot_number": 30}, Header(slot_number=7))["slot_number"] == 30
    assert later_fields(schedule, {}, Header())["slot_number"] == 0


def test_a_copy_has_a_hash_of_its_own() -> None:
    header = Header(number=1)
    assert header.under_hash(b"\x01" * 32).hash == b"\x01" * 32
    assert header.under_hash(b"\x01" * 32) == header
    assert header.hash != Header(number=2).hash


def test_every_flag_is_a_parameter_of_the_rules() -> None:
    parameters = schedule_for("frontier").parameters
    assert not [row.name for row in LATER_FIELDS if row.flag not in parameters]
