"""Tests that the rows of the opcode table are complete, distinct and well-formed."""

import subprocess
import sys

import pytest

from fastevm.core.spec.opcodes import BY_MNEMONIC, BY_VALUE, OPCODES, op_named


def test_rows_are_distinct_and_in_order():
    assert [op.value for op in OPCODES] == sorted(BY_VALUE)
    assert len(BY_MNEMONIC) == len(BY_VALUE) == len(OPCODES) == 154


@pytest.mark.parametrize(
    ("mnemonic", "value", "imm", "need", "grow"),
    [
        ("STOP", 0x00, 0, 0, 0),
        ("ADD", 0x01, 0, 2, -1),
        ("MULMOD", 0x09, 0, 3, -2),
        ("ISZERO", 0x15, 0, 1, 0),
        ("CLZ", 0x1E, 0, 1, 0),
        ("KECCAK256", 0x20, 0, 2, -1),
        ("EXTCODECOPY", 0x3C, 0, 4, -4),
        ("EXTCODEHASH", 0x3F, 0, 1, 0),
        ("SELFBALANCE", 0x47, 0, 0, 1),
        ("BASEFEE", 0x48, 0, 0, 1),
        ("BLOBHASH", 0x49, 0, 1, 0),
        ("BLOBBASEFEE", 0x4A, 0, 0, 1),
        ("SLOTNUM", 0x4B, 0, 0, 1),
        ("TLOAD", 0x5C, 0, 1, 0),
        ("TSTORE", 0x5D, 0, 2, -2),
        ("MCOPY", 0x5E, 0, 3, -3),
        ("PUSH0", 0x5F, 0, 0, 1),
        ("PUSH1", 0x60, 1, 0, 1),
        ("PUSH32", 0x7F, 32, 0, 1),
        ("DUP1", 0x80, 0, 1, 1),
        ("DUP16", 0x8F, 0, 16, 1),
        ("SWAP1", 0x90, 0, 2, 0),
        ("SWAP16", 0x9F, 0, 17, 0),
        ("LOG0", 0xA0, 0, 2, -2),
        ("LOG4", 0xA4, 0, 6, -6),
        ("DUPN", 0xE6, 1, 17, 1),
        ("SWAPN", 0xE7, 1, 18, 0),
        ("EXCHANGE", 0xE8, 1, 3, 0),
        ("CREATE", 0xF0, 0, 3, -2),
        ("CALL", 0xF1, 0, 7, -6),
        ("DELEGATECALL", 0xF4, 0, 6, -5),
        ("CREATE2", 0xF5, 0, 4, -3),
        ("STATICCALL", 0xFA, 0, 6, -5),
        ("REVERT", 0xFD, 0, 2, -2),
        ("SELFDESTRUCT", 0xFF, 0, 1, -1),
    ],
)
def test_shapes(mnemonic, value, imm, need, grow):
    op = BY_MNEMONIC[mnemonic]
    assert (op.value, op.imm, op.pops, op.grow) == (value, imm, need, grow)


def test_pushes_and_the_deep_stack_opcodes_have_immediates():
    deep = {"DUPN", "SWAPN", "EXCHANGE"}
    assert {op.mnemonic for op in OPCODES if op.imm} == {f"PUSH{n}" for n in range(1, 33)} | deep


@pytest.mark.parametrize(
    ("former", "present"),
    [("DIFFICULTY", "PREVRANDAO"), ("sha3", "KECCAK256"), ("Suicide", "SELFDESTRUCT")],
)
def test_former_names_are_understood(former, present):
    assert op_named(former).mnemonic == present


def test_a_name_of_no_opcode_is_an_error():
    with pytest.raises(KeyError):
        op_named("PUSH33")


def test_the_rules_import_no_compiled_module():
    """The build reads the rules before it compiles anything."""
    program = (
        "import sys, fastevm.core.spec.forks, fastevm.core.spec.opcodes\n"
        "paths = {name: getattr(m, '__file__', None) or '' for name, m in sys.modules.items()}\n"
        "print([n for n, p in paths.items() if n.startswith('fastevm') and not p.endswith('.py')])"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert found.stdout == "[]\n"
