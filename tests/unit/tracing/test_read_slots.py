"""Tests that a balance's slot is found in mappings, packed words and behind proxies."""

import pytest

from fastevm.simulate import CallRequest, StateView
from fastevm.tracing import find_slot
from fastevm.tracing.read_slots import SlotField

from .support import view_of

TOKEN, LOGIC, ALICE = b"\x70" * 20, b"\x71" * 20, b"\xa1" * 20
ASK = CallRequest(to=TOKEN, data=bytes.fromhex("70a08231") + bytes(12) + ALICE)
# READS loads the slot keccak256(account, 0), ANSWERS returns the top of the stack. Tests put code
# between them that processes the value.
READS = "6004355f525f60205260405f2054"
ANSWERS = "5f5260205ff3"
PACKED = "60401c6f" + "ff" * 16 + "16"  # the 128 bits above the lowest 64
TWICE = "600202"
FORWARDS = "365f5f3760205f365f6005545af45060205ff3"  # forwards to the address in slot 5


def view(code: str, **others: bytes) -> StateView:
    accounts = {TOKEN: {"code": bytes.fromhex(code), "storage": {5: int.from_bytes(LOGIC, "big")}}}
    if others:
        accounts[LOGIC] = {"code": others["logic"]}
    return view_of(accounts)


def test_a_whole_slot_is_found() -> None:
    found = find_slot(view(READS + ANSWERS), ASK)
    assert found is not None
    assert (found.address, found.shift, found.width) == (TOKEN, 0, 256)
    assert found.written(5, 2**256 - 1) == 2**256 - 1


def test_a_part_of_a_slot_is_found() -> None:
    found = find_slot(view(READS + PACKED + ANSWERS), ASK)
    assert found is not None
    assert (found.shift, found.width) == (64, 128)
    word = found.written(2**256 - 1, 7)
    assert (word >> 64) & (2**128 - 1) == 7
    assert word & (2**64 - 1) == 2**64 - 1
    assert word >> 192 == 2**64 - 1
    with pytest.raises(ValueError, match="does not fit into the 128 bits"):
        found.written(0, 2**128)


def test_the_slot_of_a_proxy_is_its_own() -> None:
    found = find_slot(view(FORWARDS, logic=bytes.fromhex(READS + ANSWERS)), ASK)
    assert found is not None
    assert (found.address, found.width) == (TOKEN, 256)


@pytest.mark.parametrize("code", [READS + TWICE + ANSWERS, "5f5ffd", "00", "5f5260205ff3"])
def test_what_no_slot_holds_is_not_found(code: str) -> None:
    assert find_slot(view(code), ASK) is None


def test_a_number_at_the_top_of_a_word() -> None:
    assert SlotField(TOKEN, 1, 224, 32).written(1, 2**32 - 1) == ((2**32 - 1) << 224) + 1
