"""The encodings of official test files: hex with leading zeros, bare ``0x``, padded or not."""

from collections.abc import Mapping
from typing import Any


def number_of(text: str | int) -> int:
    """A number: hex with any leading zeros, ``0x`` (zero), decimal, or a marked big one."""
    if isinstance(text, int):
        return text
    text = text.removeprefix("0x:bigint ")
    if text.startswith(("0x", "0X")):
        return int(text[2:] or "0", 16)
    return int(text or "0")


def bytes_of(text: str) -> bytes:
    """Bytes of hex, with or without 0x; an odd digit gets a zero before it."""
    text = text.removeprefix("0x")
    return bytes.fromhex("0" * (len(text) % 2) + text)


def address_of(text: str) -> bytes:
    """20 bytes, padded on the left."""
    return bytes_of(text).rjust(20, b"\0")


def account_of(fields: Mapping[str, Any]) -> dict[str, Any]:
    """An account of ``pre`` or ``postState`` in the form that Layer.of takes."""
    return {
        "balance": number_of(fields.get("balance", "0x0")),
        "nonce": number_of(fields.get("nonce", "0x0")),
        "code": bytes_of(fields.get("code", "0x")),
        "storage": {
            number_of(slot): number_of(value) for slot, value in fields.get("storage", {}).items()
        },
    }


def accounts_of(pre: Mapping[str, Any]) -> dict[bytes, dict[str, Any]]:
    """All accounts of a test's state, by address."""
    return {address_of(address): account_of(fields) for address, fields in pre.items()}
