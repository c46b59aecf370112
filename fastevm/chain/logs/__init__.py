"""The log index: packed logs of blocks, and queries over ranges of the canonical chain."""

from fastevm.chain.logs.block_logs import BlockLogs, LogQuery
from fastevm.chain.logs.index import LogIndex, LogLimits

__all__ = [
    "BlockLogs",
    "LogIndex",
    "LogLimits",
    "LogQuery",
]
