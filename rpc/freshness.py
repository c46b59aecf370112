"""How old pre-confirmed state may be: the policy of ``pending``, of /readyz and its numbers."""

import time
from typing import Final

from fastevm.chain import PendingBlock
from fastevm.node import Node
from fastevm.rpc.metrics import Metrics

GAP: Final = 1.5  # cadences from slice to slice, from which on a slice counts as late


def extends_head(node: Node, pending: PendingBlock) -> bool:
    """Whether a pre-confirmed block lies on the canonical chain, above its head."""
    lowest = next(iter(pending.chain())).header
    if pending.header.number <= node.chain.head.number:
        return False
    return node.chain.canonical_hash(lowest.number - 1) == lowest.parent_hash


class Freshness:
    """Watches the slices of a node; any thread may ask.

    ``limit``: seconds after which the newest slice is too old to be served; 0 for no limit.
    ``upstream_limit``: seconds after which a node that follows another and does not get its head is
    not ready any more; 0 for no limit. Where blocks replace slices, ``limit`` counts for them too.
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
        """Return the pre-confirmed block if it is to be served, else None: ``latest`` stands in.

        It must lie on the canonical chain, above its head, and be renewed in time.
        """
        pending = self.node.pending()
        if pending is None or not extends_head(self.node, pending):
            return None
        if self.is_stale(pending):
            self.metrics.add("pending_stale_reads_total")
            return None
        return pending

    def is_stale(self, pending: PendingBlock) -> bool:
        """Whether a slice is too old. Where nothing renews the pending block, none ever is."""
        if not self.limit or self.node.slice_cadence_ms is None:
            return False
        return time.monotonic() - pending.published > self.limit

    def age(self) -> float | None:
        """Seconds since the newest slice, to the millisecond; None without a pending block."""
        pending = self.node.pending()
        return None if pending is None else round(time.monotonic() - pending.published, 3)

    @property
    def head_limit(self) -> float:
        """Seconds without the upstream's head after which a follower is not ready; 0: no limit."""
        if self.limit and self.upstream_limit and self.node.blocks_replace_slices:
            return min(self.limit, self.upstream_limit)
        return self.upstream_limit

    def ready(self) -> bool:
        """Whether the node serves what it promises.

        That is fresh slices, where it makes or follows any, and the head of the node it follows.
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
        """Count a slice, and the gap to the one before it."""
        cadence = self.node.slice_cadence_ms
        self.metrics.add("slices_told_total")
        if self._last is not None and cadence is not None:
            gap = pending.published - self._last
            self.longest_gap = max(self.longest_gap, gap)
            if gap * 1000 > GAP * cadence:
                self.metrics.add("slice_gaps_total")
        self._last = pending.published

    def gauges(self) -> dict[str, float]:
        """Return age and longest gap of slices in seconds, and where the pending block stands."""
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
