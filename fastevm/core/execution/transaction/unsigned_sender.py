"""Unsigned transactions of impersonated senders, for development chains.

The signature fields contain the sender: r is the address (2^160 for the zero address) and s is 0,
which is invalid in a real signature. So the hash depends on the sender, as in anvil, and no other
chain accepts the transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fastevm.core.execution.arbitrum.transaction_types import LAYOUTS
from fastevm.core.execution.transaction.transaction import Transaction, restore
from fastevm.core.execution.transaction.transaction_fields import DEPOSIT_TX, POST_EXEC_TX

ADDRESS_BYTES: Final = 20
ADDRESS_LIMIT: Final = 2 ** (8 * ADDRESS_BYTES)
UNPROTECTED_V: Final = 27  # v of a legacy signature without a chain id
# v of a legacy signature with a chain id, to which twice the chain id is added (EIP-155)
PROTECTED_V: Final = 35
UNSIGNED: Final = frozenset((DEPOSIT_TX, POST_EXEC_TX, *LAYOUTS))  # types without a signature


def impersonated(sender: bytes, fields: Mapping[str, Any], *, chain_id: int | None) -> Transaction:
    """Returns an unsigned transaction of ``sender`` (20 bytes).

    ``fields``: as for `Transaction.build`, without v. ``chain_id``: chain id of a legacy
    transaction; None before EIP-155. Raises TransactionDecodeError if a value does not fit its
    field.
    """
    is_legacy = Transaction.build(**fields).type == 0
    protected = UNPROTECTED_V if chain_id is None else PROTECTED_V + 2 * chain_id
    v = protected if is_legacy else 0
    r = int.from_bytes(sender, "big") or ADDRESS_LIMIT
    return Transaction.build(sender=sender, **fields, v=v, r=r, s=0)


def is_impersonated(transaction: Transaction) -> bool:
    """Returns whether the signature has the form that `impersonated` writes."""
    return (
        transaction.s == 0
        and 0 < transaction.r <= ADDRESS_LIMIT
        and transaction.type not in UNSIGNED
    )


def with_named_sender(transaction: Transaction) -> Transaction:
    """Returns an impersonated transaction with its sender set, or any other transaction unchanged.

    Use the function only for transactions that this node wrote: anybody can write such signatures.
    """
    if not is_impersonated(transaction):
        return transaction
    sender = transaction.r % ADDRESS_LIMIT
    return restore(transaction.raw, sender.to_bytes(ADDRESS_BYTES, "big"))
