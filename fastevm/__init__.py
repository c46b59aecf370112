"""The public names of fastevm.

They are loaded when they are first used, so that ``import fastevm`` takes milliseconds.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fastevm.core.execution.block.fees import (
        blob_base_fee,
        next_base_fee,
        next_excess_blob_gas,
    )
    from fastevm.core.execution.transaction.transaction import Transaction
    from fastevm.core.primitives.keccak import keccak256
    from fastevm.core.spec.fork_id import fork_id
    from fastevm.core.state.layer import Layer
    from fastevm.errors import PrecompileFailed, Revert
    from fastevm.evm.contracts import Contract, ContractReverted, contract
    from fastevm.evm.hooks import Hooks
    from fastevm.evm.machine import EVM
    from fastevm.evm.result import ExecutionResult
    from fastevm.simulate.api import simulate, simulate_async
    from fastevm.simulate.batch.many import simulate_many

__version__ = "0.1.0"

# Name -> module that defines it.
_MODULES = {
    "Contract": "fastevm.evm.contracts",
    "ContractReverted": "fastevm.evm.contracts",
    "EVM": "fastevm.evm.machine",
    "ExecutionResult": "fastevm.evm.result",
    "Hooks": "fastevm.evm.hooks",
    "Layer": "fastevm.core.state.layer",
    "PrecompileFailed": "fastevm.errors",
    "Revert": "fastevm.errors",
    "Transaction": "fastevm.core.execution.transaction.transaction",
    "blob_base_fee": "fastevm.core.execution.block.fees",
    "contract": "fastevm.evm.contracts",
    "fork_id": "fastevm.core.spec.fork_id",
    "keccak256": "fastevm.core.primitives.keccak",
    "next_base_fee": "fastevm.core.execution.block.fees",
    "next_excess_blob_gas": "fastevm.core.execution.block.fees",
    "simulate_async": "fastevm.simulate",
    "simulate_many": "fastevm.simulate",
}

__all__ = [
    "EVM",
    "Contract",
    "ContractReverted",
    "ExecutionResult",
    "Hooks",
    "Layer",
    "PrecompileFailed",
    "Revert",
    "Transaction",
    "__version__",
    "blob_base_fee",
    "contract",
    "fork_id",
    "keccak256",
    "next_base_fee",
    "next_excess_blob_gas",
    "simulate",
    "simulate_async",
    "simulate_many",
]


def __getattr__(name: str) -> Any:
    if name == "simulate":  # a package that can be called
        return import_module("fastevm.simulate")
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'fastevm' has no attribute {name!r}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__]
