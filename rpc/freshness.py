"""Decides how old pre-confirmed state may be, for ``pending``, /readyz and metrics."""

import time
from typing import Final

from fastevm.chain import PendingBlock
from fastevm.node import Node
from fastevm.rpc.metrics import Metrics

GAP: Final = 1.5  # a slice counts as late after this many slice intervals


def extends_head(node: Node, pending: PendingBlock) -> bool:
    """Return whether a pre-confirmed block is above the head and extends the canonical chain."""
    lowest = next(iter(pending.chain())).header
    if pending.header.number <= node.chain.head.number:
        return False
    return node.chain.canonical_hash(lowest.number - 1) == lowest.parent_hash


class Freshness:
    """Decides whether a node's slices are fresh, and measures their age. Thread-safe.

    After ``limit`` seconds, the newest slice is too old to be served. After ``upstream_limit``
    seconds without a new head from the upstream, a follower is not ready. 0 means no limit. If the
    chain has blocks in place of slices, ``limit`` applies to blocks.
    """

    def __init__(
        self, node: Node, metrics: Metrics, *, limit: float, upstream_limit: float = 0.0
    ) -> None:
        self.node = node
        self.metrics = metrics
        self.limit = limit
        self.upstream_limit = upstream_limit
        self.longest_gap = 0.0
        self._last: float | None = None

    def pending(self) -> PendingBlock | None:
        """Return the pre-confirmed block, or None if ``pending`` must be served as ``latest``.

        The block must be above the canonical head, descend from the head, and not be older than
        ``limit``.
        """
        pending = self.node.pending()
        if pending is None or not extends_head(self.node, pending):
            return None
        if self.is_stale(pending):
            self.metrics.add("pending_stale_reads_total")
            return None
        return pending

    def is_stale(self, pending: PendingBlock) -> bool:
        """Return whether a slice is too old. False on a node without slices."""
        if not self.limit or self.node.slice_cadence_ms is None:
            return False
        return time.monotonic() - pending.published > self.limit

    def age(self) -> float | None:
        """Return the age of the newest slice in seconds, to 1 ms; None if no block is pending."""
        pending = self.node.pending()
        return None if pending is None else round(time.monotonic() - pending.published, 3)

    @property
    def head_limit(self) -> float:
        """Return after how many seconds without an upstream head a follower is not ready.

        0 means never.
        """
        if self.limit and self.upstream_limit and self.node.blocks_replace_slices:
            return min(self.limit, self.upstream_limit)
        return self.upstream_limit

    def ready(self) -> bool:
        """Return whether the node is ready (/readyz).

        A node is ready if its slices are fresh (if it has any), it has the upstream's head, it is
        not syncing and block building does not fail.
        """
        age = self.node.upstream_age
        if age is not None and 0 < self.head_limit < age:
            return False
        if self.node.sync_state is not None or self.node.building_fails:
            return False
        if self.node.slice_cadence_ms is None:
            return True
        pending = self.node.pending()
        return pending is not None and not self.is_stale(pending)

    def note(self, pending: PendingBlock) -> None:
        """Count a slice and record the gap to the previous slice."""
        cadence = self.node.slice_cadence_ms
        self.metrics.add("slices_told_total")
        if self._last is not None and cadence is not None:
            gap = pending.published - self._last
            self.longest_gap = max(self.longest_gap, gap)
            if gap * 1000 > GAP * cadence:
                self.metrics.add("slice_gaps_total")
        self._last = pending.published

    def gauges(self) -> dict[str, float]:
        """Return the metrics of slices: readiness, longest gap, position in the pending block."""
        pending = self.node.pending()
        answer: dict[str, float] = {
            "ready": self.ready(),
            "pending_served": self.pending() is not None,
            "slice_gap_seconds_max": self.longest_gap,
        }
        if pending is not None:
            answer["pending_age_seconds"] = time.monotonic() - pending.published
            answer["pending_number"] = pending.header.number
            answer["pending_slice_index"] = pending.slice_index
        return answer
