"""EIP-152: BLAKE2 compression function F.

A precompile at address 9 runs rounds of BLAKE2b's compression for 1 gas each.
"""

from hashlib import blake2b

import pytest

from .support import before_and_after, call_precompile

BEFORE, AFTER = before_and_after(152)
BLAKE2F = 9
INITIAL = bytes.fromhex(
    "48c9bdf267e6096a3ba7ca8485ae67bb2bf894fe72f36e3cf1361d5f3af54fa5"
    "d182e6ad7f520e511f6c3e2b8c68059b6bbd41fbabd9831f79217e1319cde05b"
)


def operands(rounds, message):
    """Returns the precompile's input for the last block of a message of at most 128 bytes."""
    counter = len(message).to_bytes(16, "little")
    return rounds.to_bytes(4, "big") + INITIAL + message.ljust(128, b"\0") + counter + b"\1"


def test_twelve_rounds_hash_a_message_of_one_block():
    before, after = (
        call_precompile(fork, BLAKE2F, operands(12, b"abc")) for fork in (BEFORE, AFTER)
    )
    assert (before.success, before.output, before.gas_used) == (True, b"", 0)
    assert (after.success, after.output) == (True, blake2b(b"abc").digest())


@pytest.mark.parametrize("rounds", [0, 1, 12, 100_000])
def test_a_round_costs_one_gas(rounds):
    assert call_precompile(BEFORE, BLAKE2F, operands(rounds, b"")).gas_used == 0
    assert call_precompile(AFTER, BLAKE2F, operands(rounds, b"")).gas_used == rounds


def test_other_operands_fail():
    for data in (operands(12, b"")[:-1], operands(12, b"")[:-1] + b"\2"):
        assert call_precompile(BEFORE, BLAKE2F, data).success
        assert not call_precompile(AFTER, BLAKE2F, data).success
