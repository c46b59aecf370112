"""The transaction types that Python code distinguishes, and compound fields as named tuples."""

from typing import Final, NamedTuple

POST_EXEC_TX: Final = 125
"""Type of the transaction that refunds gas at the end of a block (OP Stack)."""

DEPOSIT_TX: Final = 126
"""Type of transactions from L1 (OP Stack)."""


class AccessListEntry(NamedTuple):
    """An entry of an access list (EIP-2930): a 20-byte address and its slots to mark warm."""

    address: bytes
    storage_keys: tuple[int, ...]


class Authorization(NamedTuple):
    """A signed set-code authorization (EIP-7702): the signer's account runs ``address``'s code.

    ``chain_id`` 0 is valid on every chain. The zero address removes a delegation.
    """

    chain_id: int
    address: bytes
    nonce: int
    y_parity: int
    r: int
    s: int
