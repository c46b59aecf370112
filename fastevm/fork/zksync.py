"""Chains of the ZK Stack, which do not run EVM code natively."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from fastevm.errors import ForkError
from fastevm.fork.remote_source import RemoteSource

NAMES: Final = MappingProxyType(
    {
        324: "ZKsync Era",
        300: "ZKsync Sepolia",
        260: "anvil-zksync",
        270: "a local ZKsync node",
        232: "Lens",
        37_111: "Lens Testnet",
        240: "Cronos zkEVM Testnet",
        388: "Cronos zkEVM",
        626: "BattleChain",
        2_741: "Abstract",
        11_124: "Abstract Testnet",
        50_104: "Sophon",
        531_050_104: "Sophon Testnet",
        1_612_127: "PlayFi Albireo",
    }
)
"""The names of the chains by chain id."""
OWN_MEMBER: Final = "l1BatchNumber"  # a header member that only these chains have


def refuse_zksync(source: RemoteSource) -> None:
    """Raises ForkError if the chain is a ZK Stack chain."""
    name = NAMES.get(source.chain_id)
    if name is None and OWN_MEMBER in source.header:
        name = "of the ZK Stack"
    if name is not None:
        raise ForkError(
            f"chain {source.chain_id} ({name}) runs the ZKsync VM: its contracts are no EVM code,"
            " so fastevm cannot execute them; use anvil-zksync for a fork of this chain"
        )
