"""Executes one long transaction in a separate thread, while slices are published on time.

A transaction with a full gas limit may take longer than a slice, for example a single call of
BLAKE2F. The builder starts the transaction right after a slice, publishes empty slices while it
runs, and then includes other transactions. If the block ends first, the execution is cancelled. It
starts again, earlier in a later block.
"""

from __future__ import annotations

import threading
import time

from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Receipt
from fastevm.node.pool.pooled_transaction import PooledTransaction
from fastevm.node.production.sliced_block import SlicedBlock
from fastevm.node.thread_priority import raise_priority


class LongRun:
    """The execution of one transaction in a block. Nothing else may use the block until it ends.

    ``expected_end`` is in monotonic seconds. When ``is_done``, ``receipt`` or ``error`` is the
    result and ``seconds`` the CPU time.
    """

    def __init__(self, block: SlicedBlock, pooled: PooledTransaction, expected_end: float) -> None:
        self.block, self.pooled, self.expected_end = block, pooled, expected_end
        self.receipt: Receipt | None = None
        self.error: Exception | None = None
        self.seconds = 0.0
        self._done = threading.Event()
        block.resume()
        self._thread = threading.Thread(target=self._run, name="fastevm-long-run", daemon=True)
        self._thread.start()

    @property
    def transaction(self) -> Transaction:
        """The transaction."""
        return self.pooled.transaction

    @property
    def is_done(self) -> bool:
        """Whether the execution ended."""
        return self._done.is_set()

    def wait(self, until: float) -> None:
        """Waits for the end of the execution, at most until the monotonic time ``until``."""
        self._done.wait(max(0.0, until - time.monotonic()))

    def end(self) -> None:
        """Cancels the execution if it has not ended, and waits a few milliseconds for its end."""
        if not self.is_done:
            self.block.cancel()
        self._thread.join()
        self.block.resume()

    def _run(self) -> None:
        raise_priority()
        started = time.thread_time()
        try:
            self.receipt = self.block.add(self.transaction)
        except Exception as error:  # the builder handles it
            self.error = error
        self.seconds = time.thread_time() - started
        self._done.set()
