"""The state of a chain that another node holds; names are loaded late."""

from fastevm.fork.counters import ForkCounters as ForkCounters
from fastevm.fork.evm_of_fork import forked_evm as forked_evm
from fastevm.fork.masking import masked as masked
from fastevm.fork.remote_block import RemoteBlock as RemoteBlock
from fastevm.fork.remote_block import place_of as place_of
from fastevm.fork.remote_block import receipt_of as receipt_of
from fastevm.fork.remote_source import RemoteSource as RemoteSource
from fastevm.fork.rules import rules_of as rules_of
from fastevm.fork.transaction_replay import Replay as Replay
from fastevm.fork.transaction_replay import replay as replay
