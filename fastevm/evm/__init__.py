"""The Python API of the EVM: machines, contracts, hooks, snapshots and results."""

from fastevm.evm.hooks import Hooks
from fastevm.evm.machine import EVM
from fastevm.evm.precompile_call import PrecompileCall
from fastevm.evm.result import ExecutionResult
from fastevm.evm.stateful import StatefulPrecompile, stateful

__all__ = ["EVM", "ExecutionResult", "Hooks", "PrecompileCall", "StatefulPrecompile", "stateful"]
