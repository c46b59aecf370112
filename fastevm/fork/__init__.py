"""The state of a chain that another node holds: fetched in few round trips, kept on disk."""

from fastevm.fork.counters import ForkCounters
from fastevm.fork.masking import masked
from fastevm.fork.remote_source import RemoteSource
from fastevm.fork.rules import rules_of

__all__ = ["ForkCounters", "RemoteSource", "masked", "rules_of"]
