"""The terminal output of a node: transactions, requests, call trees."""

from fastevm.rpc.terminal.block_log import Recorder, console_lines, recorder_of
from fastevm.rpc.terminal.call_log import calls_of
from fastevm.rpc.terminal.failed_requests import answers_of, is_of_explorer
from fastevm.rpc.terminal.repeated_call import NewestViews, may_call

__all__ = [
    "NewestViews",
    "Recorder",
    "answers_of",
    "calls_of",
    "console_lines",
    "is_of_explorer",
    "may_call",
    "recorder_of",
]
