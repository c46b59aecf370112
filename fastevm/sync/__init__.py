"""Sync with another node: its canonical blocks and its pre-confirmed slices."""

from fastevm.sync.feed_hub import SlowReader

__all__ = [
    "SlowReader",
]
