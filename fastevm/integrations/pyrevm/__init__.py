"""A drop-in replacement for pyrevm on ``fastevm.EVM``: programs change only the import.

Differences from pyrevm 0.3: for access lists and original values, each message is a separate
transaction, so nothing is warm from the previous message. An unknown fork raises UnknownForkError.
"""

from fastevm.core.execution.block.fees import fake_exponential
from fastevm.integrations.pyrevm.environments import BlockEnv, CfgEnv, Env, TxEnv
from fastevm.integrations.pyrevm.journaled_evm import EVM
from fastevm.integrations.pyrevm.outcomes import (
    AccountInfo,
    ExecutionResult,
    JournalCheckpoint,
    Log,
)

__all__ = [
    "EVM",
    "AccountInfo",
    "BlockEnv",
    "CfgEnv",
    "Env",
    "ExecutionResult",
    "JournalCheckpoint",
    "Log",
    "TxEnv",
    "fake_exponential",
]
