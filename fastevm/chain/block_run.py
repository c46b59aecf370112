"""Executes a block so that a deadline can stop it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fastevm.core.execution.block.block import BlockBuilder
from fastevm.core.simulation.deadline import Deadline, time_limit
from fastevm.errors import FastevmError, ResourceLimitError

LIMIT = "block_seconds"


class _BlockRun:
    """Cancels the builders of one block when the deadline of the executing thread expires."""

    def __init__(self) -> None:
        self.builder: BlockBuilder | None = None
        self.is_stopped = False

    def set_deadline(self, deadline: Deadline) -> _BlockRun:
        """Returns this object, whose `cancel` is called when the deadline stops the run."""
        return self

    def begin(self, builder: BlockBuilder) -> None:
        """Records the builder that is about to run."""
        self.builder = builder
        if self.is_stopped:
            builder.cancel()

    def cancel(self) -> None:
        self.is_stopped = True
        if self.builder is not None:
            self.builder.cancel()


@contextmanager
def stopped_by_deadline(number: int) -> Iterator[Callable[[BlockBuilder], None]]:
    """Returns a context in which the calling thread's deadline stops the execution of a block.

    Yields the ``on_builder`` of `execute_block`. Raises `ResourceLimitError` if the deadline
    stopped the execution. The block may still be valid.
    """
    run = _BlockRun()
    with time_limit(run, math.inf):
        try:
            yield run.begin
        except FastevmError:
            if run.is_stopped:
                text = f"block {number}: its execution took too long, or was cancelled"
                raise ResourceLimitError(LIMIT, text) from None
            raise
