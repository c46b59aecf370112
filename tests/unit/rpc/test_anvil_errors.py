"""Tests messages of reverts and halts against recordings of anvil 1.7.1."""

import pytest
from eth_abi import encode

from fastevm.rpc.anvil_errors import halt_words, revert_words

ERROR, PANIC, OWN = (bytes.fromhex(text) for text in ("08c379a0", "4e487b71", "deadbeef"))
WORD = bytes(31)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "execution reverted"),
        (ERROR + encode(["string"], ["user error"]), "execution reverted: user error"),
        (ERROR + encode(["string"], [""]), "execution reverted: "),
        (PANIC + WORD + b"\x01", "execution reverted: panic: assertion failed (0x01)"),
        (PANIC + WORD + b"\x00", "execution reverted: panic: generic/unspecified error (0x00)"),
        (PANIC + WORD + b"\x99", "execution reverted: panic: unknown code (0x99)"),
        (PANIC + b"\x01", "execution reverted: NH{q\x01"),
        (OWN, "execution reverted: custom error 0xdeadbeef"),
        (OWN + b"hello", "execution reverted: custom error 0xdeadbeef: hello"),
        (OWN + b"\xff\x80", "execution reverted: custom error 0xdeadbeef: ff80"),
        (ERROR, "execution reverted: custom error 0x08c379a0"),
        (
            bytes.fromhex("e0a89a3a") + WORD + b"\x65",  # the whole data are valid UTF-8
            "execution reverted: custom error 0xe0a89a3a: " + "\0" * 31 + "e",
        ),
        (b"abc", "execution reverted: abc"),
        (b"\xff\xfe\xfd", "execution reverted: custom error bytes 0xfffefd"),
    ],
)
def test_a_revert_says_what_anvil_reads_in_its_data(data: bytes, words: str) -> None:
    assert revert_words(data) == words


@pytest.mark.parametrize(
    ("error", "name"),
    [
        ("invalid opcode: INVALID", "InvalidFEOpcode"),
        ("invalid opcode: opcode 0xc not defined", "OpcodeNotFound"),
        ("stack underflow (0 <=> 2)", "StackUnderflow"),
        ("stack limit reached 1024 (1023)", "StackOverflow"),
        ("out of gas", "OutOfGas"),
        ("return data out of bounds", "OutOfOffset"),
        ("another", "another"),
    ],
)
def test_a_halt_has_the_name_that_anvil_gives_it(error: str, name: str) -> None:
    assert halt_words(error) == f"EVM error {name}"
