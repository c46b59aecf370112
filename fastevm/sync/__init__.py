"""Sync with another node: its canonical blocks and its pre-confirmed slices."""

from typing import Final

from fastevm.primitives.late_names import late_names

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

# A node that follows nobody asks for few of them.
__getattr__ = late_names(
    __name__,
    {
        "FeedFollower": "feed_follower",
        "SlowReader": "feed_hub",
        "SyncService": "service",
        "SyncState": "block_import",
        "UpstreamError": "upstream",
        "fetch_block": "service",
    },
)
