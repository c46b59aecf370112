"""The state of another node's chain: fetched in few round trips and cached on disk."""

from fastevm.fork.counters import ForkCounters
from fastevm.fork.evm_of_fork import forked_evm
from fastevm.fork.redact import masked
from fastevm.fork.remote_block import RemoteBlock, place_of, receipt_of
from fastevm.fork.remote_source import RemoteSource
from fastevm.fork.rules import rules_of
from fastevm.fork.transaction_replay import Replay, replay

__all__ = [
    "ForkCounters",
    "RemoteBlock",
    "RemoteSource",
    "Replay",
    "forked_evm",
    "masked",
    "place_of",
    "receipt_of",
    "replay",
    "rules_of",
]
