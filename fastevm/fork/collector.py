"""Values of a state as they come from answers, checked for their form."""

from __future__ import annotations

from typing import Any, Final

from fastevm.core.primitives.config_values import read_bytes, read_number
from fastevm.core.state.source import Found, RemoteAccount
from fastevm.errors import ForkError

MAX_WORD: Final = 2**256 - 1
MAX_NONCE: Final = 2**64 - 1


class BadValue(ForkError):
    """An endpoint answered with something that is no value of a state."""


class Collector:
    """Gathers the parts of accounts and the slots until they are whole.

    ``found`` holds what is whole. A second value for the same key must be the same one: BadValue.
    """

    def __init__(self) -> None:
        self.found = Found()
        self._fresh = Found()
        self._parts: dict[bytes, dict[str, Any]] = {}

    def take_fresh(self) -> Found:
        """What became whole since the last time."""
        fresh, self._fresh = self._fresh, Found()
        return fresh

    def balance(self, address: bytes, answer: Any) -> None:
        """The answer to eth_getBalance."""
        self._part(address, "balance", word_of(answer, "balance"))

    def nonce(self, address: bytes, answer: Any) -> None:
        """The answer to eth_getTransactionCount."""
        self._part(address, "nonce", word_of(answer, "nonce", MAX_NONCE))

    def code(self, address: bytes, answer: Any) -> None:
        """The answer to eth_getCode."""
        self._part(address, "code", bytes_of(answer, "code"))

    def account(self, address: bytes, account: RemoteAccount) -> None:
        """A whole account."""
        known = self.found.accounts.setdefault(address, account)
        if known is account:
            self._fresh.accounts[address] = account
        elif known != account:
            raise BadValue(f"two answers about account 0x{address.hex()} disagree")

    def slot(self, address: bytes, slot: int, value: int) -> None:
        """The value of a slot."""
        known = self.found.slots.get((address, slot))
        if known is None:
            self.found.slots[(address, slot)] = self._fresh.slots[(address, slot)] = value
        elif known != value:
            raise BadValue(f"two answers about slot {slot:#x} of 0x{address.hex()} disagree")

    def block_hash(self, number: int, digest: bytes) -> None:
        """The hash of a block below the pinned one."""
        self.found.block_hashes[number] = self._fresh.block_hashes[number] = digest

    def _part(self, address: bytes, name: str, value: Any) -> None:
        parts = self._parts.setdefault(address, {})
        parts[name] = value
        if len(parts) == 3:
            self.account(address, RemoteAccount(**self._parts.pop(address)))


def word_of(answer: Any, name: str, most: int = MAX_WORD) -> int:
    """A number of an answer, at most ``most``. BadValue."""
    try:
        if not isinstance(answer, str):
            raise ValueError(f"{name}: expected a hex string, found {answer!r:.60}")
        number = read_number("0x0" if answer == "0x" else answer, name)
    except ValueError as error:
        raise BadValue(str(error)) from None
    if number > most:
        raise BadValue(f"{name}: a number that is too large")
    return number


def bytes_of(answer: Any, name: str, size: int | None = None) -> bytes:
    """Bytes of an answer, exactly ``size`` of them if given. BadValue."""
    try:
        return read_bytes(answer, name, size)
    except ValueError as error:
        raise BadValue(str(error)[:200]) from None
