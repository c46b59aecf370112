"""Types that Python code tells apart, and compound fields of transactions as named tuples."""

from typing import Final, NamedTuple

POST_EXEC_TX: Final = 125
"""The type of a transaction that gives gas back at the end of a block (OP stack)."""

DEPOSIT_TX: Final = 126
"""The type of a transaction that comes from L1 (OP stack)."""


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
