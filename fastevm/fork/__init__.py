"""The state of another node's chain, fetched in few round trips and cached on disk."""

from fastevm.fork.arbitrum import CLASSIC_BLOCKS
from fastevm.fork.counters import ForkCounters
from fastevm.fork.evm_of_fork import forked_evm, moved_evm
from fastevm.fork.redact import redacted
from fastevm.fork.remote_block import RemoteBlock, block_and_index, receipt_of
from fastevm.fork.remote_source import RemoteSource
from fastevm.fork.rules import has_known_rules, rules_of
from fastevm.fork.transaction_replay import Replay, replay

__all__ = [
    "CLASSIC_BLOCKS",
    "ForkCounters",
    "RemoteBlock",
    "RemoteSource",
    "Replay",
    "block_and_index",
    "forked_evm",
    "has_known_rules",
    "moved_evm",
    "receipt_of",
    "redacted",
    "replay",
    "rules_of",
]
