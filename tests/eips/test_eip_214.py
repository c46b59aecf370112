"""EIP-214: STATICCALL.

STATICCALL calls a contract that must not change state; a change makes the call fail.
"""

import pytest

from .support import INVALID_OPCODE, OTHER, before_and_after, calling, cost, run, top

BEFORE, AFTER = before_and_after(214)
CALL = calling("STATICCALL", OTHER, gas=100_000)


def succeeds(fork, code):
    """Returns the result of a STATICCALL to a contract with this code: 1 or 0."""
    return top(fork, CALL, accounts={OTHER: {"code": code, "balance": 10}})


def test_the_opcode_is_new():
    assert run(BEFORE, CALL).error == INVALID_OPCODE
    assert run(AFTER, CALL).success


@pytest.mark.parametrize(
    "code",
    [
        "1 0 SSTORE",
        "0 0 LOG0",
        "0 0 0 CREATE",
        "0 SELFDESTRUCT",
        calling("CALL", b"\x01" * 20, value=1),
        calling("CALL", b"\xd1" * 20, value=1, gas=0),
    ],
)
def test_a_change_fails_the_callee(code):
    assert succeeds(AFTER, code) == 0


@pytest.mark.parametrize("code", ["0 SLOAD", "42 0 MSTORE 32 0 RETURN", calling("CALL", b"\x04")])
def test_reading_is_allowed(code):
    assert succeeds(AFTER, code) == 1


def test_a_callee_of_the_callee_must_not_change_anything_either():
    writer = b"\xd1" * 20
    accounts = {
        OTHER: {"code": calling("CALL", writer) + " 0 MSTORE 32 0 RETURN"},
        writer: {"code": "1 0 SSTORE"},
    }
    for mnemonic, inner in (("CALL", 1), ("STATICCALL", 0)):
        asked = calling(mnemonic, OTHER).replace("0 0", "32 0", 1)
        assert top(AFTER, f"{asked} POP 0 MLOAD", accounts=accounts) == inner


def test_it_costs_what_a_call_costs():
    arguments = f"0 0 0 0 0x{OTHER.hex()} 0"
    assert cost(AFTER, arguments, "STATICCALL") == 700
    assert cost(AFTER, f"0 {arguments}", "CALL") == 700
