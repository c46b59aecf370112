"""What a developer reads while the node runs: transactions, requests, call trees."""

from fastevm.rpc.terminal.answer_log import answers_of
from fastevm.rpc.terminal.block_log import Teller, console_lines, teller_of
from fastevm.rpc.terminal.call_log import calls_of, may_call

__all__ = ["Teller", "answers_of", "calls_of", "console_lines", "may_call", "teller_of"]
