"""Fetches state that transactions and blocks read from another node (on a fork)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Header

# code of the exception for a transaction that reads missing state
NEEDS_STATE: Final = "needs_state"


class MissingState:
    """The fetcher of a chain whose whole state is in this process. It fetches nothing.

    `TransactionState` overrides every method for a forked chain. The methods of `TransactionState`
    raise ForkError if the upstream does not answer.
    """

    is_remote = False

    def is_fetching(self, tx_hash: bytes) -> bool:
        """Returns whether the state of this transaction is being fetched."""
        return False

    def begin(self, transaction: Transaction) -> None:
        """Starts to fetch, in another thread, the state that the transaction reads.

        Returns immediately.
        """

    def fetch(self, transaction: Transaction) -> None:
        """Fetches the state that the transaction reads, and waits for it."""

    def load_sender(self, transaction: Transaction) -> None:
        """Reads the sender's account, so that the pool does not fetch it under its lock.

        Raises StateNotKnown on an event loop if the account has not been fetched yet.
        """

    def prepare_block(self, parent: Header, timestamp: int) -> None:
        """Fetches the state that a child of ``parent`` reads outside its transactions.

        ``timestamp``: the child's, in seconds.
        """

    def prepare_end(self, parent: Header, timestamp: int, run: Callable[[], object]) -> None:
        """Fetches the state that a child of ``parent`` reads at its end.

        ``run``: executes a child without transactions to its end, without side effects.
        """

    def close(self) -> None:
        """Prevents further fetches."""
