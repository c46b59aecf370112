"""Decodes values of official test files: hex with leading zeros, bare ``0x``, padded or not."""

from collections.abc import Mapping
from typing import Any


def number_of(text: str | int) -> int:
    """Decodes a number: hex with leading zeros, ``0x`` (zero), decimal, or a marked bigint."""
    if isinstance(text, int):
        return text
    text = text.removeprefix("0x:bigint ")
    if text.startswith(("0x", "0X")):
        return int(text[2:] or "0", 16)
    return int(text or "0")


def bytes_of(text: str) -> bytes:
    """Decodes hex with or without 0x; an odd number of digits is padded with a leading zero."""
    text = text.removeprefix("0x")
    return bytes.fromhex("0" * (len(text) % 2) + text)


def address_of(text: str) -> bytes:
    """Decodes an address, padded on the left to 20 bytes."""
    return bytes_of(text).rjust(20, b"\0")


def account_of(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Decodes an account of ``pre`` or ``postState`` for Layer.of."""
    return {
        "balance": number_of(fields.get("balance", "0x0")),
        "nonce": number_of(fields.get("nonce", "0x0")),
        "code": bytes_of(fields.get("code", "0x")),
        "storage": {
            number_of(slot): number_of(value) for slot, value in fields.get("storage", {}).items()
        },
    }


def accounts_of(pre: Mapping[str, Any]) -> dict[bytes, dict[str, Any]]:
    """Decodes all accounts of a test's state, by address."""
    return {address_of(address): account_of(fields) for address, fields in pre.items()}
