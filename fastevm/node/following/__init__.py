"""Following another node: its canonical blocks and its pre-confirmed slices."""

from fastevm.node.following.block_import import SyncState
from fastevm.node.following.feed_follower import FeedFollower
from fastevm.node.following.feed_hub import SlowReader
from fastevm.node.following.service import PENDING_AGE, SyncService, fetch_block
from fastevm.node.following.upstream import UpstreamError

__all__ = [
    "PENDING_AGE",
    "FeedFollower",
    "SlowReader",
    "SyncService",
    "SyncState",
    "UpstreamError",
    "fetch_block",
]
