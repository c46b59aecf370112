"""Tests reasons in revert data against an independent ABI encoder."""

import pytest
from eth_abi import encode
from hypothesis import given
from hypothesis import strategies as st

from fastevm.core.simulation.revert import (
    ERROR_SELECTOR,
    PANIC_REASONS,
    PANIC_SELECTOR,
    revert_message,
    revert_reason,
)


@given(st.text())
def test_error_string_gives_its_text(text: str) -> None:
    data = ERROR_SELECTOR + encode(["string"], [text])
    assert revert_reason(data) == text
    assert revert_message(data) == f"execution reverted: {text}"


@pytest.mark.parametrize(("code", "reason"), sorted(PANIC_REASONS.items()))
def test_known_panic_codes_have_their_meaning(code: int, reason: str) -> None:
    assert revert_reason(PANIC_SELECTOR + encode(["uint256"], [code])) == reason


@given(st.integers(0, 2**256 - 1).filter(lambda code: code not in PANIC_REASONS))
def test_other_panic_codes_are_shown_in_hex(code: int) -> None:
    data = PANIC_SELECTOR + encode(["uint256"], [code])
    assert revert_reason(data) == f"unknown panic code: {hex(code)}"


@given(st.binary(max_size=200))
def test_arbitrary_arguments_never_raise(body: bytes) -> None:
    for selector in (ERROR_SELECTOR, PANIC_SELECTOR, b""):
        assert revert_message(selector + body).startswith("execution reverted")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        ERROR_SELECTOR,
        ERROR_SELECTOR + bytes(63),
        ERROR_SELECTOR + b"\xff" * 64,
        ERROR_SELECTOR + encode(["string"], ["cut"])[:-32],
        PANIC_SELECTOR + bytes(31),
        b"\x12\x34\x56\x78" + bytes(64),
    ],
)
def test_malformed_or_foreign_data_has_no_reason(data: bytes) -> None:
    assert revert_reason(data) is None
    assert revert_message(data) == "execution reverted"


def test_invalid_utf8_is_replaced() -> None:
    head = (32).to_bytes(32, "big") + (2).to_bytes(32, "big")
    data = ERROR_SELECTOR + head + b"\xffa" + bytes(30)
    assert revert_reason(data) == "\ufffda"
