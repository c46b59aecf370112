"""The source of a remote state: its protocol, requests and answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct, field


class RemoteAccount(Struct, frozen=True):
    """An account of the remote state: ``balance`` in wei, ``nonce`` and ``code``.

    An account without balance, nonce and code does not exist (EIP-161), unless ``empty`` is true.
    ``unknown_code``: the 32-byte hash of code that is not available; an execution that reads this
    code ends with an error. ``has_storage``: whether a slot is nonzero; None means that every
    account with a nonce or code may have storage.
    """

    balance: int
    nonce: int
    code: bytes = b""
    empty: bool = False
    unknown_code: bytes | None = None
    has_storage: bool | None = None


def call_object(sender: bytes, to: bytes | None, data: bytes, value: int) -> dict[str, str]:
    """Returns a call in JSON form, for ``Wanted.calls``; ``value`` is in wei."""
    call = {"from": "0x" + sender.hex(), "data": "0x" + data.hex(), "value": hex(value)}
    if to is not None:
        call["to"] = "0x" + to.hex()
    return call


class Wanted(Struct):
    """The keys of missing values: 20-byte addresses, slots by address, block numbers.

    ``calls``: call objects in JSON form (``from``, ``to``, ``data``, ...) that read the missing
    values. A source may ask its endpoint which other values such a call reads, and return these
    values too.
    """

    accounts: set[bytes] = field(default_factory=set)
    slots: set[tuple[bytes, int]] = field(default_factory=set)
    block_hashes: set[int] = field(default_factory=set)
    calls: list[Mapping[str, Any]] = field(default_factory=list)

    def join(self, other: Wanted) -> None:
        """Adds the values and calls of ``other``."""
        self.accounts |= other.accounts
        self.slots |= other.slots
        self.block_hashes |= other.block_hashes
        self.calls += other.calls

    def __bool__(self) -> bool:
        """Returns whether a value is missing. Calls alone do not count."""
        return bool(self.accounts or self.slots or self.block_hashes)


class Found(Struct):
    """Values of a remote state at one block: the wanted values, and often further values."""

    accounts: dict[bytes, RemoteAccount] = field(default_factory=dict)
    slots: dict[tuple[bytes, int], int] = field(default_factory=dict)
    block_hashes: dict[int, bytes] = field(default_factory=dict)


class ResolvingSource(Protocol):
    """The source of a remote state with ``resolves``: it also decides which code may be read."""

    def read_code(self, address: bytes, code_hash: bytes) -> None:
        """Checks whether an account's code may be read, before its first read.

        Raises an error if not.
        """
        ...


class StateSource(Protocol):
    """Reads the state of one block from another node or a file. Thread-safe."""

    @property
    def chain_id(self) -> int: ...
    @property
    def block_number(self) -> int: ...
    @property
    def block_hash(self) -> bytes: ...

    def fetch(self, wanted: Wanted) -> Found:
        """Returns all wanted values, in as few round trips as the endpoint allows.

        Raises ForkError, which names the endpoint without its key, if any value is unavailable.
        """
        ...
