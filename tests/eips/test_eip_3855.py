"""EIP-3855: PUSH0."""

from fastevm.spec.opcodes import BY_MNEMONIC

from .support import introduced, price


def test_came_with_shanghai_and_is_cheaper_than_a_push_of_bytes():
    assert introduced(3855) == "Shanghai"
    assert price("PUSH0") == {"Frontier": None, "Shanghai": 2}
    assert price("PUSH1") == {"Frontier": 3}


def test_has_no_immediate_and_the_byte_before_push1():
    assert BY_MNEMONIC["PUSH0"].imm == 0
    assert BY_MNEMONIC["PUSH0"].value == BY_MNEMONIC["PUSH1"].value - 1
