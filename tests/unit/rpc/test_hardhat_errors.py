"""Tests failed transactions with Hardhat 2.25's messages."""

import pytest
from eth_abi import encode

from fastevm.rpc.hardhat_errors import failure_words

ERROR, PANIC, OWN = (bytes.fromhex(text) for text in ("08c379a0", "4e487b71", "deadbeef"))
REVERTED = "execution reverted"
VM = "VM Exception while processing transaction: "


@pytest.mark.parametrize(
    ("error", "data", "words"),
    [
        (REVERTED, b"", "Transaction reverted without a reason string"),
        (
            REVERTED,
            ERROR + encode(["string"], ["GS010"]),
            f"{VM}reverted with reason string 'GS010'",
        ),
        (
            REVERTED,
            PANIC + bytes(31) + b"\x11",
            f"{VM}reverted with panic code 0x11"
            " (Arithmetic operation overflowed outside of an unchecked block)",
        ),
        (
            REVERTED,
            PANIC + bytes(31) + b"\x99",
            f"{VM}reverted with panic code 0x99 (Unknown panic code)",
        ),
        (
            REVERTED,
            OWN,
            f"{VM}reverted with an unrecognized custom error (return data: 0xdeadbeef)",
        ),
        ("out of gas", b"", "Transaction ran out of gas"),
        ("invalid opcode: INVALID", b"", f"{VM}invalid opcode"),
    ],
)
def test_a_failure_says_what_hardhat_says(error: str, data: bytes, words: str) -> None:
    assert failure_words(error, data) == words
