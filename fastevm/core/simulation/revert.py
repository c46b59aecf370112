"""Decodes the reason from revert data: only Error(string) and Panic(uint256).

Source: the Solidity ABI specification, section "Panic via assert and Error via require". Data in
another encoding has no reason; the message is then only ``execution reverted``.
"""

from typing import Final

REVERTED: Final = "execution reverted"

ERROR_SELECTOR: Final = bytes.fromhex("08c379a0")  # Error(string)
PANIC_SELECTOR: Final = bytes.fromhex("4e487b71")  # Panic(uint256)

PANIC_REASONS: Final = {
    0x00: "generic panic",
    0x01: "assert(false)",
    0x11: "arithmetic underflow or overflow",
    0x12: "division or modulo by zero",
    0x21: "enum overflow",
    0x22: "invalid encoded storage byte array accessed",
    0x31: "out-of-bounds array access; popping on an empty array",
    0x32: "out-of-bounds access of an array or bytesN",
    0x41: "out of memory",
    0x51: "uninitialized function",
}


def revert_reason(data: bytes) -> str | None:
    """Returns the reason that revert ``data`` encodes, or None if it cannot be decoded.

    The reason of an Error(string) is its text, with invalid UTF-8 replaced; the reason of a
    Panic(uint256) is the meaning of its code, or ``unknown panic code: 0x..``.
    """
    selector, body = data[:4], data[4:]
    if selector == ERROR_SELECTOR:
        return _string_argument(body)
    if selector == PANIC_SELECTOR and len(body) >= 32:
        code = int.from_bytes(body[:32], "big")
        return PANIC_REASONS.get(code, f"unknown panic code: {code:#x}")
    return None


def revert_message(data: bytes) -> str:
    """Returns ``execution reverted: <reason>``, or ``execution reverted`` without a reason."""
    reason = revert_reason(data)
    return REVERTED if reason is None else f"{REVERTED}: {reason}"


def _string_argument(body: bytes) -> str | None:
    """Decodes a call's only argument, a dynamic string. Returns None if it is out of bounds."""
    if len(body) < 64:
        return None
    offset = int.from_bytes(body[:32], "big")
    if offset + 32 > len(body):
        return None
    start = offset + 32
    length = int.from_bytes(body[offset:start], "big")
    if start + length > len(body):
        return None
    return body[start : start + length].decode("utf-8", "replace")
