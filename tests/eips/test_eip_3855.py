"""EIP-3855: PUSH0 instruction.

PUSH0 pushes a zero with one byte of code, for 2 gas.
"""

from .support import INVALID_OPCODE, assemble, before_and_after, cost, run, top

BEFORE, AFTER = before_and_after(3855)


def test_the_opcode_pushes_a_zero():
    assert assemble("PUSH0") == b"\x5f"
    assert run(BEFORE, "PUSH0").error == INVALID_OPCODE
    assert top(AFTER, "PUSH0") == 0


def test_it_is_cheaper_than_a_push_of_a_byte():
    assert cost(AFTER, "", "PUSH0") == 2
    assert cost(AFTER, "", "0") == cost(BEFORE, "", "0") == 3
    assert assemble("0") == b"\x60\x00"


def test_1025_of_them_are_too_many():
    assert run(AFTER, b"\x5f" * 1_024).success
    assert run(AFTER, b"\x5f" * 1_025).error == "stack limit reached"
