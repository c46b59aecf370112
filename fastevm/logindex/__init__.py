"""Logs of blocks as packed records, and where they are found."""

from fastevm.logindex.block_logs import BlockLogs, LogQuery
from fastevm.logindex.index import LogIndex, LogLimits

__all__ = [
    "BlockLogs",
    "LogIndex",
    "LogLimits",
    "LogQuery",
]
