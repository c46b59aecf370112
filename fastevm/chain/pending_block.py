"""The pre-confirmed block: published with every slice, read by requests for ``pending``."""

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
    """The block under construction as of one slice. Immutable.

    ``header`` has the gas used, receipts root and bloom of the transactions so far. Its state root
    is zero, so the hash is provisional.

    - ``slice_index``: counts from 0 in each block
    - ``payload_id``: 8 bytes, the same in all slices of a block
    - ``first_new``: index of the slice's first transaction in the block
    - ``published``: monotonic time in seconds
    - ``previous``: on a follower, the preceding pending block if that block is complete but not
      canonical yet
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
        """Returns the pending blocks above the canonical chain, oldest first.

        The last is this block.
        """
        if self.previous is not None:
            yield from self.previous.chain()
        yield self


class SliceListeners:
    """Callbacks for slices.

    An exception of a callback is logged and does not affect other callbacks.
    """

    def __init__(self) -> None:
        self._listeners: list[SliceListener] = []
        self._withdrawal_listeners: list[Callable[[], None]] = []

    def add(self, listener: SliceListener) -> None:
        """Calls ``listener(pending, first_new_index)`` after every publication.

        The listener runs on the builder's thread and must return immediately.
        """
        self._listeners.append(listener)

    def add_withdrawal(self, listener: Callable[[], None]) -> None:
        """Calls ``listener()`` after the pending block was withdrawn and not replaced."""
        self._withdrawal_listeners.append(listener)

    def notify_withdrawn(self) -> None:
        """Calls all withdrawal listeners."""
        for listener in self._withdrawal_listeners:
            try:
                listener()
            except Exception:
                log.exception("a listener for withdrawn slices failed")

    def notify(self, pending: PendingBlock) -> None:
        """Calls all listeners."""
        for listener in self._listeners:
            try:
                listener(pending, pending.first_new)
            except Exception:
                log.exception("a listener for slices failed")
