"""The log index: packed logs of blocks, and queries over ranges of the canonical chain."""

from fastevm.logindex.block_logs import BlockLogs, LogQuery
from fastevm.logindex.index import LogIndex, LogLimits

__all__ = [
    "BlockLogs",
    "LogIndex",
    "LogLimits",
    "LogQuery",
]
