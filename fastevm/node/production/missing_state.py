"""Fetches the state that transactions and blocks read, where it lies on another node (a fork)."""

from __future__ import annotations

from typing import Final

from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Header

NEEDS_STATE: Final = "needs_state"  # the code with which a block refuses such a transaction


class MissingState:
    """The fetcher of a chain whose whole state is in this process: it has nothing to fetch.

    `TransactionState` overrides every method for a forked chain. Those methods raise ForkError if
    the other node does not answer.
    """

    is_remote = False

    def is_fetching(self, tx_hash: bytes) -> bool:
        """Returns whether the state of this transaction is being fetched."""
        return False

    def begin(self, transaction: Transaction) -> None:
        """Fetches what the transaction reads, in a thread of its own; returns immediately."""

    def fetch(self, transaction: Transaction) -> None:
        """Fetches what the transaction reads, and waits for it."""

    def load_sender(self, transaction: Transaction) -> None:
        """Reads the sender's account, so that the pool does not wait for it under its lock.

        Raises StateNotKnown on an event loop if the account has not been fetched yet.
        """

    def prepare_block(self, parent: Header, timestamp: int) -> None:
        """Fetches what a child of ``parent`` at ``timestamp`` (seconds) reads by itself."""

    def close(self) -> None:
        """Begins no more fetches."""
