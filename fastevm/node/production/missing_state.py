"""What a block producer asks for when a transaction needs state that is not known here (a fork)."""

from __future__ import annotations

from typing import Final, Protocol

from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Header

NEEDS_STATE: Final = "needs_state"  # the code with which a block refuses such a transaction


class MissingState(Protocol):
    """Fetches the state that transactions and blocks read. ForkError where that fails."""

    def is_fetching(self, tx_hash: bytes) -> bool:
        """Whether the state of this transaction is on its way."""
        ...

    def begin(self, transaction: Transaction) -> None:
        """Fetch what the transaction reads, in a thread of its own; returns at once."""
        ...

    def fetch(self, transaction: Transaction) -> None:
        """Fetch what the transaction reads, and wait for it."""
        ...

    def prepare_block(self, parent: Header, timestamp: int) -> None:
        """Fetch what a child of ``parent`` at ``timestamp`` (seconds) reads by itself."""
        ...
