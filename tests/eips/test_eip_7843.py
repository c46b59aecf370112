"""EIP-7843: SLOTNUM opcode.

Headers have the slot of the beacon chain, and SLOTNUM reads it.
"""

from .support import (
    INVALID_OPCODE,
    before_and_after,
    chain_across,
    child_header,
    cost,
    grow,
    header_refusal,
    run,
    top,
)

BEFORE, AFTER = before_and_after(7843)


def test_slotnum_gives_the_slot_of_the_block():
    assert run(BEFORE, b"\x4b").error == INVALID_OPCODE
    assert top(AFTER, "SLOTNUM", slot_number=2**64 - 1) == 2**64 - 1
    assert top(AFTER, "SLOTNUM") == 0


def test_it_costs_two():
    assert cost(AFTER, "", "SLOTNUM") == 2


def test_headers_have_a_slot_from_then_on():
    chain = chain_across(7843)
    before, after, later = (grow(chain).header for _ in range(3))
    assert before.slot_number is None
    assert (after.slot_number, later.slot_number) == (0, 1)


def test_a_header_without_a_slot_is_refused_and_any_slot_is_taken():
    chain = chain_across(7843)
    parent = [grow(chain) for _ in range(2)][-1].header
    assert header_refusal(AFTER, child_header(AFTER, parent), parent) is None
    from_then_on = child_header(BEFORE, parent)
    assert header_refusal(AFTER, from_then_on, parent) is not None
