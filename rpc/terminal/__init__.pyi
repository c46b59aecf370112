"""The names of the package."""

from fastevm.rpc.terminal.told_blocks import Teller, teller_of
from fastevm.rpc.terminal.told_calls import calls_of, may_call

__all__ = ["Teller", "calls_of", "may_call", "teller_of"]
