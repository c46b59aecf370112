"""Chains: stored blocks, the pool, the pending block and who builds it."""

from fastevm.chain.assembly import BlockAttributes, assemble_block
from fastevm.chain.chain import Chain
from fastevm.chain.hub import SlowReader
from fastevm.chain.log_json import LogWriter
from fastevm.chain.log_records import BlockLogs, LogQuery
from fastevm.chain.logs import LogIndex, LogLimits
from fastevm.chain.node import Mining, Node, dev_node, genesis_node
from fastevm.chain.options import (
    START_OVER,
    STOP,
    abandon_chain,
    add_chain_arguments,
    follow_upstream,
    genesis_time,
    node_options,
    open_directory,
)
from fastevm.chain.pending import PendingBlock
from fastevm.chain.plain_reads import PlainReads, Read
from fastevm.chain.receipt_json import ReceiptWriter
from fastevm.chain.storage import DataDirectory, Fsync, StorageError

__all__ = [
    "START_OVER",
    "STOP",
    "BlockAttributes",
    "BlockLogs",
    "Chain",
    "DataDirectory",
    "Fsync",
    "LogIndex",
    "LogLimits",
    "LogQuery",
    "LogWriter",
    "Mining",
    "Node",
    "PendingBlock",
    "PlainReads",
    "Read",
    "ReceiptWriter",
    "SlowReader",
    "StorageError",
    "abandon_chain",
    "add_chain_arguments",
    "assemble_block",
    "dev_node",
    "follow_upstream",
    "genesis_node",
    "genesis_time",
    "node_options",
    "open_directory",
]
