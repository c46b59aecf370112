"""Contracts as Python objects: an ABI, an address and a machine."""

from fastevm.contracts.artifacts import Artifact, load_artifact
from fastevm.contracts.contract import (
    Called,
    Contract,
    ContractFunction,
    ContractReverted,
    ContractType,
    contract,
)
from fastevm.contracts.interface import Event
from fastevm.contracts.source_map import Place

__all__ = [
    "Artifact",
    "Called",
    "Contract",
    "ContractFunction",
    "ContractReverted",
    "ContractType",
    "Event",
    "Place",
    "contract",
    "load_artifact",
]
