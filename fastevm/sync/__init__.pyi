"""The names of the package."""

from typing import Final

from fastevm.sync.block_import import SyncState
from fastevm.sync.feed_follower import FeedFollower
from fastevm.sync.feed_hub import SlowReader
from fastevm.sync.service import SyncService, fetch_block
from fastevm.sync.upstream import UpstreamError

PENDING_AGE: Final = 5.0
"""Seconds from which on a pending block without a feed is withdrawn."""

__all__ = [
    "PENDING_AGE",
    "FeedFollower",
    "SlowReader",
    "SyncService",
    "SyncState",
    "UpstreamError",
    "fetch_block",
]
