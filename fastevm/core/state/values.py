"""Accounts and proofs as frozen values; exported by ``fastevm.core.execution.types``."""

from msgspec import Struct


class Account(Struct, frozen=True):
    """An account: ``balance`` in wei, ``nonce``, and the 32-byte ``code_hash``."""

    balance: int
    nonce: int
    code_hash: bytes


class AccountChange(Struct, frozen=True):
    """The changes of one account between two states: its new ``balance`` in wei and new ``nonce``.

    ``storage``: the new values of the slots that changed, in ascending order of the slots.
    """

    balance: int
    nonce: int
    storage: dict[int, int]


class SlotProof(Struct, frozen=True):
    """The value of a storage slot and the trie nodes (RLP, root first) that prove it."""

    slot: int
    value: int
    nodes: tuple[bytes, ...]


class AccountProof(Struct, frozen=True):
    """An account, its storage root, and the trie nodes that prove both.

    The account is None if the nodes prove that it is absent. Source: EIP-1186.
    """

    address: bytes
    account: Account | None
    storage_root: bytes
    nodes: tuple[bytes, ...]
    slots: tuple[SlotProof, ...]
