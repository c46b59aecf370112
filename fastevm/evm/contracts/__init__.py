"""Contracts as Python objects: an ABI and an address on an ``EVM``."""

from fastevm.evm.contracts.artifacts import Artifact, load_artifact
from fastevm.evm.contracts.contract import (
    Called,
    Contract,
    ContractFunction,
    ContractReverted,
    ContractType,
    contract,
)
from fastevm.evm.contracts.interface import Event
from fastevm.evm.contracts.source_map import SourceLocation

__all__ = [
    "Artifact",
    "Called",
    "Contract",
    "ContractFunction",
    "ContractReverted",
    "ContractType",
    "Event",
    "SourceLocation",
    "contract",
    "load_artifact",
]
