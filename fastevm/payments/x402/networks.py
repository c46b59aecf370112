"""Network names of x402: CAIP-2 in version 2 (``eip155:8453``), names in version 1 (``base``)."""

from typing import Final

PREFIX: Final = "eip155:"

# The networks that clients of version 1 know by name.
V1_NAMES: Final[dict[int, str]] = {
    137: "polygon",
    1_328: "sei-testnet",
    1_329: "sei",
    1_514: "story",
    2_741: "abstract",
    3_338: "peaq",
    4_689: "iotex",
    8_453: "base",
    11_124: "abstract-testnet",
    41_923: "educhain",
    43_113: "avalanche-fuji",
    43_114: "avalanche",
    80_002: "polygon-amoy",
    84_532: "base-sepolia",
    324_705_682: "skale-base-sepolia",
}
_BY_NAME: Final = {name: chain_id for chain_id, name in V1_NAMES.items()}


def caip2(chain_id: int) -> str:
    """Returns the network name of version 2."""
    return f"{PREFIX}{chain_id}"


def chain_of(network: str) -> int | None:
    """Returns the chain id of a name of either version; None for an unknown name."""
    if network.startswith(PREFIX):
        digits = network.removeprefix(PREFIX)
        return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 78 else None
    return _BY_NAME.get(network)


def shown(chain_id: int, version: int) -> str:
    """Returns the network name in the given version. Version 1 uses CAIP-2 if it has no name."""
    return V1_NAMES.get(chain_id, caip2(chain_id)) if version == 1 else caip2(chain_id)
