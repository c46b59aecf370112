"""The pre-confirmed block: what the builder publishes every slice and ``pending`` serves."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from fastevm.execution.transaction import Transaction
from fastevm.state.layer import Layer
from fastevm.types import Header, Receipt

log = logging.getLogger(__name__)

SliceListener = Callable[["PendingBlock", int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingBlock:
    """The block under construction as of one slice; immutable, so one reference is one consistent
    state.

    ``header`` has gas used, receipts root and bloom of the transactions so far; its state root is
    zero, so its hash is provisional. ``slice_index`` counts from 0 in each block, whose slices have
    the ``payload_id`` (8 bytes) in common; the slice's own transactions begin at ``first_new``.
    ``published`` is the monotonic time of publication in seconds. ``previous`` is an earlier
    pending block that is complete but not canonical yet, as a follower may have for a moment.
    """

    header: Header
    layer: Layer
    transactions: tuple[Transaction, ...]
    receipts: tuple[Receipt, ...]
    slice_index: int
    published: float
    payload_id: bytes = bytes(8)
    first_new: int = 0
    previous: PendingBlock | None = None

    def chain(self) -> Iterator[PendingBlock]:
        """The retained pending blocks, oldest first, this one last."""
        if self.previous is not None:
            yield from self.previous.chain()
        yield self


class Listeners:
    """Callbacks for slices; one that fails is reported and does not keep the others from theirs."""

    def __init__(self) -> None:
        self._listeners: list[SliceListener] = []

    def add(self, listener: SliceListener) -> None:
        """Call ``listener(pending, first_new_index)`` after every publication, on the builder's
        thread: it must only hand over.
        """
        self._listeners.append(listener)

    def tell(self, pending: PendingBlock) -> None:
        """Tell everybody about a slice."""
        for listener in self._listeners:
            try:
                listener(pending, pending.first_new)
            except Exception:
                log.exception("a listener for slices failed")
