"""pyrevm's names over ``fastevm.EVM``: a program changes one import and runs on.

What differs from pyrevm 0.3: each message is a transaction of its own for access lists and original
values, so that nothing is warm from the message before; a fork that is not known raises
UnknownForkError.
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
