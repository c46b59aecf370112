"""Where the values of a remote state come from: what is asked for and what comes back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct, field


class RemoteAccount(Struct, frozen=True):
    """An account of the remote state: ``balance`` in wei, ``nonce``, and its whole ``code``.

    An account without balance, nonce and code does not exist (EIP-161), unless it is said to be
    an ``empty`` one. ``unknown_code``: the hash (32 bytes) of code that nobody has here; a run that
    reads it ends. ``has_storage``: whether a slot is not zero; None: every account with a nonce or
    code may have one.
    """

    balance: int
    nonce: int
    code: bytes = b""
    empty: bool = False
    unknown_code: bytes | None = None
    has_storage: bool | None = None


def call_object(sender: bytes, to: bytes | None, data: bytes, value: int) -> dict[str, str]:
    """A call in JSON form, as ``Wanted.calls`` has them; ``value`` in wei."""
    call = {"from": "0x" + sender.hex(), "data": "0x" + data.hex(), "value": hex(value)}
    if to is not None:
        call["to"] = "0x" + to.hex()
    return call


class Wanted(Struct):
    """What runs read without knowing it: 20-byte addresses, slots of them, numbers of blocks.

    ``calls``: call objects in JSON form (``from``, ``to``, ``data``, ...) that read them. A source
    may ask its endpoint what else such a call touches, and give that too.
    """

    accounts: set[bytes] = field(default_factory=set)
    slots: set[tuple[bytes, int]] = field(default_factory=set)
    block_hashes: set[int] = field(default_factory=set)
    calls: list[Mapping[str, Any]] = field(default_factory=list)

    def join(self, other: Wanted) -> None:
        """Want what ``other`` wants, too."""
        self.accounts |= other.accounts
        self.slots |= other.slots
        self.block_hashes |= other.block_hashes
        self.calls += other.calls

    def __bool__(self) -> bool:
        """Whether a value is wanted; calls alone want none."""
        return bool(self.accounts or self.slots or self.block_hashes)


class Found(Struct):
    """Values of a remote state, all of one block: at least what was wanted, often more."""

    accounts: dict[bytes, RemoteAccount] = field(default_factory=dict)
    slots: dict[tuple[bytes, int], int] = field(default_factory=dict)
    block_hashes: dict[int, bytes] = field(default_factory=dict)


class ResolvingSource(Protocol):
    """What a source has besides, whose remote state resolves every read at once."""

    def read_code(self, address: bytes, code_hash: bytes) -> None:
        """Take note that the code of an account is read for the first time; an error forbids it."""
        ...


class StateSource(Protocol):
    """Reads the state of one block from wherever it is held; safe to use from several threads."""

    @property
    def chain_id(self) -> int: ...
    @property
    def block_number(self) -> int: ...
    @property
    def block_hash(self) -> bytes: ...

    def fetch(self, wanted: Wanted) -> Found:
        """All wanted values, in as few round trips as the endpoint allows.

        ForkError, which names the endpoint without its key, if a value cannot be had; nothing is
        given then.
        """
        ...
