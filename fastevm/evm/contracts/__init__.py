"""Contracts as Python objects: an ABI and an address on an ``EVM``."""

from fastevm.evm.contracts.artifacts import Artifact, load_artifact
from fastevm.evm.contracts.codec import AbiDecodingError, AbiEncodingError
from fastevm.evm.contracts.contract import (
    Contract,
    ContractReverted,
    ContractType,
    NoCode,
    contract,
)
from fastevm.evm.contracts.contract_function import Called, ContractFunction
from fastevm.evm.contracts.interface import Event, Function
from fastevm.evm.contracts.source_map import SourceLocation
from fastevm.evm.contracts.values import Values

__all__ = [
    "AbiDecodingError",
    "AbiEncodingError",
    "Artifact",
    "Called",
    "Contract",
    "ContractFunction",
    "ContractReverted",
    "ContractType",
    "Event",
    "Function",
    "NoCode",
    "SourceLocation",
    "Values",
    "contract",
    "load_artifact",
]
