"""Tests that KECCAK256 never returns the cached digest of a different message."""

import random

from fastevm.core.primitives.keccak import keccak256
from fastevm.testing.interpreter import BareMachine

from .programs import MAIN, asm

MESSAGES = 2_000
ECHO = (
    asm("CALLDATASIZE", 0, 0, "CALLDATACOPY", "CALLDATASIZE", 0, "KECCAK256")
    + asm(0, "MSTORE", 32, 0, "RETURN")
)  # fmt: skip


def machine() -> BareMachine:
    """Returns a machine with a contract that hashes its call data."""
    return BareMachine("osaka", {MAIN: {"code": ECHO}})


def check(asked: BareMachine, messages: list[bytes]) -> None:
    for message in messages:
        assert asked.call(MAIN, message).output == keccak256(message), message.hex()


def test_a_message_of_zeros_is_hashed_by_a_machine_that_has_hashed_nothing() -> None:
    for size in (0, 32, 64):
        check(machine(), [bytes(size)])


def test_messages_that_differ_in_a_single_byte_have_digests_of_their_own() -> None:
    for size in (32, 64):
        first = bytes(range(size))
        changed = [first[:i] + b"\xff" + first[i + 1 :] for i in range(size)]
        asked = machine()
        for message in changed:
            check(asked, [first, first, message, message])


def test_a_short_message_is_not_taken_for_a_long_one_that_begins_alike() -> None:
    head = bytes(31) + b"\x07"
    check(machine(), [head, head + bytes(32), head, head + head, head, head + bytes(32)])


def test_slots_of_mappings_keep_their_digests_among_many() -> None:
    dice = random.Random(7)
    keys = [dice.randbytes(20).rjust(32, b"\0") for _ in range(40)]
    keys += [n.to_bytes(32, "big") for n in range(40)] + [dice.randbytes(4).ljust(32, b"\0")]
    made = [
        dice.choice(keys) + dice.choice((b"", bytes(32), keccak256(b""), dice.choice(keys)))
        for _ in range(MESSAGES)
    ]
    check(machine(), made)


def test_a_digest_costs_the_same_the_second_time() -> None:
    asked, message = machine(), bytes(range(64))
    assert len({asked.call(MAIN, message).gas_left for _ in range(3)}) == 1
