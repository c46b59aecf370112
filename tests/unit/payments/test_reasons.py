"""Tests that revert bytes become named reasons."""

import pytest
from eth_abi.abi import encode
from eth_utils.crypto import keccak

from fastevm.payments.reasons import (
    ERROR_STRING,
    LONGEST_TEXT,
    REVERT_STRINGS,
    Reason,
    decode_revert,
)


def reverted(text: str) -> bytes:
    return bytes.fromhex("08c379a0") + encode(["string"], [text])


@pytest.mark.parametrize("text", REVERT_STRINGS)
def test_every_known_text_has_its_name_and_keeps_its_words(text: str) -> None:
    assert decode_revert(reverted(text)) == (REVERT_STRINGS[text], text)


def test_custom_errors_of_other_tokens_are_known_by_selector() -> None:
    assert decode_revert(bytes.fromhex("f9df5ac9"))[0] is Reason.PAUSED
    assert decode_revert(bytes.fromhex("db42144d") + bytes(96))[0] is Reason.BALANCE
    assert decode_revert(bytes.fromhex("d9309fb9"))[0] is Reason.NONCE_CONSUMED


def test_a_policy_of_a_token_says_whom_it_forbids() -> None:
    for scope, words in (
        ("TRANSFER_SENDER_POLICY", "the payer to send"),
        ("TRANSFER_RECEIVER_POLICY", "the recipient to receive"),
        ("TRANSFER_EXECUTOR_POLICY", "the caller to move tokens"),
        ("MINT_RECEIVER_POLICY", "this transfer"),
    ):
        data = bytes.fromhex("a43fec12") + encode(["bytes32", "uint64"], [keccak(text=scope), 9])
        assert decode_revert(data) == (Reason.BLOCKED, f"the token's policy 9 forbids {words}")


@pytest.mark.parametrize(
    ("data", "detail"),
    [
        (b"", "reverted without a reason"),
        (b"\x01\x02", "reverted without a reason"),
        (bytes.fromhex("deadbeef"), "custom error 0xdeadbeef"),
        (bytes.fromhex("4e487b71") + (17).to_bytes(32, "big"), "panic 0x11"),
        (bytes.fromhex("08c379a0") + b"\xff" * 10, "custom error 0x08c379a0"),
    ],
)
def test_anything_else_is_unknown_and_reported(data: bytes, detail: str) -> None:
    assert decode_revert(data) == (Reason.UNKNOWN, detail)


def test_a_tokens_words_are_shortened_and_cannot_forge_log_lines() -> None:
    _, text = decode_revert(reverted("first\nsecond" + "x" * 10_000))
    assert len(text) <= LONGEST_TEXT
    assert "\n" not in text


def test_no_reason_is_transient_and_final() -> None:
    assert not [reason for reason in Reason if reason.transient and reason.final]


def test_what_an_old_compiler_leaves_behind_a_text_is_passed_over() -> None:
    """The padding may not be zero: in Circle's token, compiled by Solidity 0.6, it ends in 0x41."""
    text = b"ERC20: transfer amount exceeds balance"
    words = (32).to_bytes(32, "big") + len(text).to_bytes(32, "big") + text
    decoded = decode_revert(ERROR_STRING + words + bytes(25) + b"\x41")
    assert decoded == (Reason.BALANCE, text.decode())
    assert decode_revert(ERROR_STRING + words[:64] + b"\xff" * 64)[0] is Reason.UNKNOWN
