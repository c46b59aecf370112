"""The ArbOS versions that change the EVM, one entry each, with the rules that are not EIPs.

Source: Arbitrum's go-ethereum, ``params/config_arbitrum.go`` and ``core/vm/contracts_arbitrum.go``;
the ArbOS release pages of docs.arbitrum.io.
"""

from .eips import Eip
from .op_stack import RIP_7212

ARBITRUM_FAMILY = 2  # value of the parameter native_contracts

NITRO = Eip(
    0,
    "Precompiles of ArbOS; L1's block number in NUMBER; a fixed gas limit",
    parameters={
        "native_contracts": ARBITRUM_FAMILY,
        "arbos_version": 1,
        "has_free_gas_limit": True,
    },
    name="Nitro",
)
BLOBHASH = Eip(0, "BLOBHASH without blobs", opcodes={"BLOBHASH": 3}, name="BLOBHASH")
POINT_EVALUATION = Eip(
    0,
    "Precompile of EIP-4844 without blobs",
    parameters={"kzg_point_evaluation_cost": 50_000},
    precompiles={"KZG_POINT_EVALUATION": 0x0A},
    name="point evaluation",
)
STYLUS = Eip(0, "Contracts in WebAssembly, whose execution is not supported", name="Stylus")

__all__ = ["BLOBHASH", "NITRO", "POINT_EVALUATION", "RIP_7212", "STYLUS", "version"]


def version(number: int) -> Eip:
    """Returns the entry that sets the ArbOS version.

    The version determines the precompiles' methods.
    """
    return Eip(
        0,
        "Methods of the precompiles",
        parameters={"arbos_version": number},
        name=f"ArbOS {number}",
    )
