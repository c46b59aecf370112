"""The Python API of the EVM: machines, contracts, hooks, snapshots and results."""

from fastevm.evm.hooks import Hooks
from fastevm.evm.machine import EVM
from fastevm.evm.result import ExecutionResult

__all__ = ["EVM", "ExecutionResult", "Hooks"]
