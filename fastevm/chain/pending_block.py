"""The pre-confirmed block: the producer publishes one with every slice; ``pending`` reads it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from msgspec import Struct

from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Header, Receipt
from fastevm.core.state.layer import Layer

log = logging.getLogger(__name__)

PAYLOAD_ID_SIZE = 8

SliceListener = Callable[["PendingBlock", int], None]


class PendingBlock(Struct, frozen=True, kw_only=True):
    """The block under construction as of one slice, immutable.

    ``header`` has gas used, receipts root and bloom of the transactions so far; its state root is
    zero, so its hash is provisional. ``slice_index`` counts from 0 in each block. All slices of a
    block have its ``payload_id`` (8 bytes). ``first_new``: index of the slice's first transaction.
    ``published``: monotonic time in seconds. ``previous``: on a follower, the pending block before
    this one, complete but not canonical yet.
    """

    header: Header
    layer: Layer
    transactions: tuple[Transaction, ...]
    receipts: tuple[Receipt, ...]
    slice_index: int
    published: float
    payload_id: bytes = bytes(PAYLOAD_ID_SIZE)
    first_new: int = 0
    previous: PendingBlock | None = None

    def chain(self) -> Iterator[PendingBlock]:
        """The pending blocks above the canonical chain, oldest first, this one last."""
        if self.previous is not None:
            yield from self.previous.chain()
        yield self


class SliceListeners:
    """Callbacks for slices; a failing one is logged, and the others are called."""

    def __init__(self) -> None:
        self._listeners: list[SliceListener] = []

    def add(self, listener: SliceListener) -> None:
        """Call ``listener(pending, first_new_index)`` after every publication.

        It runs on the builder's thread and must return at once.
        """
        self._listeners.append(listener)

    def notify(self, pending: PendingBlock) -> None:
        """Call all listeners."""
        for listener in self._listeners:
            try:
                listener(pending, pending.first_new)
            except Exception:
                log.exception("a listener for slices failed")
