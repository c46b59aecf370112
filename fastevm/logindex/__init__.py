"""Logs of blocks as packed records, and where they are found."""

from fastevm.logindex.index import LogIndex, LogLimits
from fastevm.logindex.records import BlockLogs, LogQuery

__all__ = [
    "BlockLogs",
    "LogIndex",
    "LogLimits",
    "LogQuery",
]
