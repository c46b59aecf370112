"""EIP-211: RETURNDATASIZE and RETURNDATACOPY.

A contract can read the output of its last call, of any size, after the call.
"""

import pytest

from .support import INVALID_OPCODE, OTHER, before_and_after, calling, cost, run, top

BEFORE, AFTER = before_and_after(211)
CALLEE = {"accounts": {OTHER: {"code": "42 0 MSTORE 96 0 RETURN"}}}
CALL = calling("CALL", OTHER)


@pytest.mark.parametrize("source", ["RETURNDATASIZE", "0 0 0 RETURNDATACOPY"])
def test_the_opcodes_are_new(source):
    assert run(BEFORE, source).error == INVALID_OPCODE
    assert run(AFTER, source).success


def test_the_size_of_the_output_is_known_after_the_call():
    assert top(AFTER, "RETURNDATASIZE") == 0
    assert top(AFTER, f"{CALL} RETURNDATASIZE", **CALLEE) == 96


def test_the_output_is_copied_though_the_call_gave_it_no_room():
    assert top(AFTER, f"{CALL} 32 0 64 RETURNDATACOPY 64 MLOAD", **CALLEE) == 42


def test_reading_past_the_end_fails():
    assert (
        run(AFTER, f"{CALL} 96 1 0 RETURNDATACOPY", **CALLEE).error == "return data out of bounds"
    )


def test_they_cost_what_the_call_data_opcodes_cost():
    for name in ("RETURNDATA", "CALLDATA"):
        assert cost(AFTER, "", f"{name}SIZE") == 2
    expand = "0 200 MSTORE"  # expands the memory beforehand
    copied = {
        name: cost(AFTER, f"{expand} {CALL} 96 0 0", f"{name}COPY", **CALLEE)
        for name in ("RETURNDATA", "CALLDATA")
    }
    assert copied == {"RETURNDATA": 3 + 3 * 3, "CALLDATA": 3 + 3 * 3}
