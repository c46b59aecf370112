"""The public names of fastevm, loaded when they are first asked for."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# Where each name lives. Loading late keeps the start of the node and of the command line short.
_HOMES = {
    "Contract": "fastevm.contracts",
    "ContractReverted": "fastevm.contracts",
    "EVM": "fastevm.evm",
    "ExecutionResult": "fastevm.evm_result",
    "Hooks": "fastevm.hooks",
    "Layer": "fastevm.state.layer",
    "PrecompileFailed": "fastevm.errors",
    "Revert": "fastevm.errors",
    "Transaction": "fastevm.execution.transaction",
    "blob_base_fee": "fastevm.execution.fees",
    "contract": "fastevm.contracts",
    "fork_id": "fastevm.spec.fork_id",
    "keccak256": "fastevm.primitives.keccak",
    "next_base_fee": "fastevm.execution.fees",
    "next_excess_blob_gas": "fastevm.execution.fees",
    "simulate_async": "fastevm.simulate",
    "simulate_many": "fastevm.simulate",
}
# Packages that are called like a function.
_CALLABLE = frozenset(("simulate",))

__all__ = ["__version__", *sorted({*_HOMES, *_CALLABLE})]


def __getattr__(name: str) -> Any:
    if name in _CALLABLE:
        return import_module(f"fastevm.{name}")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'fastevm' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_CALLABLE})
