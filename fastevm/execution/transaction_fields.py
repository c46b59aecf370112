"""The compound fields of a transaction as named tuples: access list entries, authorizations."""

from typing import NamedTuple


class AccessListEntry(NamedTuple):
    """One entry of an access list (EIP-2930): a 20-byte address and the slots to warm there."""

    address: bytes
    storage_keys: tuple[int, ...]


class Authorization(NamedTuple):
    """A signed set-code authorization (EIP-7702): the signer's account runs ``address``'s code.

    ``chain_id`` 0 is valid on every chain; the zero address ends a delegation.
    """

    chain_id: int
    address: bytes
    nonce: int
    y_parity: int
    r: int
    s: int
