"""Collects state values from answers and checks their format."""

from __future__ import annotations

from typing import Any, Final

from fastevm.core.primitives.config_values import read_bytes, read_number
from fastevm.core.state.source import Found, RemoteAccount
from fastevm.errors import ForkError

MAX_WORD: Final = 2**256 - 1
MAX_NONCE: Final = 2**64 - 1
LONGEST_NUMBER: Final = 1_000  # characters; leading zeros are allowed


class BadValue(ForkError):
    """An endpoint's answer is not a valid state value."""


class Collector:
    """Collects slots and the parts of accounts.

    ``found`` contains complete values. Raises BadValue if two values for the same key differ.
    """

    def __init__(self) -> None:
        self.found = Found()
        self._fresh = Found()
        self._parts: dict[bytes, dict[str, Any]] = {}

    def take_fresh(self) -> Found:
        """Returns the values completed since the last call."""
        fresh, self._fresh = self._fresh, Found()
        return fresh

    def balance(self, address: bytes, answer: Any) -> None:
        """Adds the answer of eth_getBalance."""
        self._part(address, "balance", word_of(answer, "balance"))

    def nonce(self, address: bytes, answer: Any) -> None:
        """Adds the answer of eth_getTransactionCount."""
        self._part(address, "nonce", word_of(answer, "nonce", MAX_NONCE))

    def code(self, address: bytes, answer: Any) -> None:
        """Adds the answer of eth_getCode."""
        self._part(address, "code", bytes_of(answer, "code"))

    def account(self, address: bytes, account: RemoteAccount) -> None:
        """Adds a complete account."""
        known = self.found.accounts.setdefault(address, account)
        if known is account:
            self._fresh.accounts[address] = account
        elif known != account:
            raise BadValue(f"two answers about account 0x{address.hex()} disagree")

    def slot(self, address: bytes, slot: int, value: int) -> None:
        """Adds the value of a slot."""
        known = self.found.slots.get((address, slot))
        if known is None:
            self.found.slots[(address, slot)] = self._fresh.slots[(address, slot)] = value
        elif known != value:
            raise BadValue(f"two answers about slot {slot:#x} of 0x{address.hex()} disagree")

    def block_hash(self, number: int, digest: bytes) -> None:
        """Adds the hash of a block before the pinned block."""
        self.found.block_hashes[number] = self._fresh.block_hashes[number] = digest

    def _part(self, address: bytes, name: str, value: Any) -> None:
        parts = self._parts.setdefault(address, {})
        parts[name] = value
        if len(parts) == 3:
            self.account(address, RemoteAccount(**self._parts.pop(address)))


def word_of(answer: Any, name: str, most: int = MAX_WORD) -> int:
    """Returns the number in an answer. Raises BadValue if it exceeds ``most``."""
    try:
        if not isinstance(answer, str):
            raise ValueError(f"{name}: expected a hex string, found {answer!r:.60}")
        if len(answer) > LONGEST_NUMBER:
            raise ValueError(f"{name}: number too large")
        number = read_number("0x0" if answer == "0x" else answer, name)
    except ValueError as error:
        raise BadValue(str(error)) from None
    if number > most:
        raise BadValue(f"{name}: number too large")
    return number


def bytes_of(answer: Any, name: str, size: int | None = None) -> bytes:
    """Returns the bytes in an answer. Raises BadValue if the length is not ``size``."""
    try:
        return read_bytes(answer, name, size)
    except ValueError as error:
        raise BadValue(str(error)[:200]) from None
