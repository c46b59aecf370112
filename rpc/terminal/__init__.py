"""The terminal output of a node: transactions, requests, call trees."""

from fastevm.rpc.terminal.answer_log import answers_of
from fastevm.rpc.terminal.block_log import Recorder, console_lines, recorder_of
from fastevm.rpc.terminal.call_log import calls_of, may_call

__all__ = ["Recorder", "answers_of", "calls_of", "console_lines", "may_call", "recorder_of"]
