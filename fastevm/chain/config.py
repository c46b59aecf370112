"""The configuration of a chain: its id, its forks, its block time, its deposit contract."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from fastevm.core.execution.types import ZERO_ADDRESS
from fastevm.core.primitives.config_values import read_bytes, read_number
from fastevm.core.primitives.replace import replace
from fastevm.core.spec.activation import MAINNET, Activations
from fastevm.core.spec.parameters import Value

MAINNET_DEPOSIT_CONTRACT = bytes.fromhex("00000000219ab540356cbb839cbe05303d7705fa")
DAO_EXTRA_DATA = b"dao-hard-fork"
DAO_EXTRA_DATA_BLOCKS = 10

DEFAULT_BLOCK_TIME_MS = 2_000
DEFAULT_SLICE_INTERVAL_MS = 200
MS_PER_SECOND = 1_000


class ChainConfig(Struct, frozen=True, kw_only=True):
    """The constants of a chain.

    - ``deposit_contract``: the address whose logs are deposits (EIP-6110)
    - ``block_time_ms``: milliseconds between the blocks that this node builds
    - ``slice_interval_ms``: milliseconds between pre-confirmed slices
    - ``fixed_block_time``: every timestamp is the parent's plus the block time; blocks of a feed
      are checked for this rule, too
    - ``shares_seconds``: a block may have the timestamp of its parent
    - ``parameters``: the values set by `with_parameters`
    """

    chain_id: int
    activations: Activations
    deposit_contract: bytes = ZERO_ADDRESS
    block_time_ms: int = DEFAULT_BLOCK_TIME_MS
    slice_interval_ms: int = DEFAULT_SLICE_INTERVAL_MS
    fixed_block_time: bool = False
    shares_seconds: bool = False
    parameters: Mapping[str, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0 <= self.chain_id < 2**64:
            raise ValueError(f"chain_id: expected 0 to 2**64 - 1, found {self.chain_id}")
        if len(self.deposit_contract) != 20:
            raise ValueError(
                f"deposit_contract: expected 20 bytes, found {len(self.deposit_contract)}"
            )
        if not 0 < self.slice_interval_ms <= self.block_time_ms:
            raise ValueError(
                f"slice_interval_ms: expected 1 to the block time {self.block_time_ms}, "
                f"found {self.slice_interval_ms}"
            )

    @property
    def least_timestamp_step(self) -> int:
        """The minimum difference between the timestamps of a block and its parent, in seconds.

        It is 0 if blocks are less than a second apart, so that they may share a timestamp.
        """
        return 0 if self.shares_seconds or self.block_time_ms < MS_PER_SECOND else 1

    @classmethod
    def from_genesis(
        cls,
        genesis: Mapping[str, Any],
        *,
        block_time_ms: int = DEFAULT_BLOCK_TIME_MS,
        slice_interval_ms: int = DEFAULT_SLICE_INTERVAL_MS,
        fixed_block_time: bool = False,
        shares_seconds: bool = False,
        parameters: Mapping[str, Value] | None = None,
    ) -> ChainConfig:
        """Reads the constants from a genesis file in geth's format.

        ``parameters``: see :meth:`with_parameters`. Raises ValueError with the invalid member.
        """
        config = genesis.get("config")
        if not isinstance(config, Mapping):
            raise ValueError("config: expected an object")
        if "chainId" not in config:
            raise ValueError("config.chainId: missing")
        name = "depositContractAddress"
        deposit_contract = config.get(name) or ZERO_ADDRESS.hex()
        activations = Activations.from_genesis_config(config)
        made = cls(
            chain_id=read_number(config["chainId"], "config.chainId"),
            activations=activations,
            deposit_contract=read_bytes(deposit_contract, "config." + name, 20),
            block_time_ms=block_time_ms,
            slice_interval_ms=slice_interval_ms,
            fixed_block_time=fixed_block_time,
            shares_seconds=shares_seconds,
        )
        return made.with_parameters(parameters or {})

    def with_parameters(self, values: Mapping[str, Value]) -> ChainConfig:
        """Returns this configuration with these parameter values in every fork."""
        if not values:
            return self
        activations = self.activations.with_parameters(**values)
        return replace(self, activations=activations, parameters={**self.parameters, **values})

    def extra_data_at(self, number: int) -> bytes | None:
        """Returns the extra data that this block must have (EIP-779), or None if the rules do not
        fix it.
        """
        fork = self.activations.dao_block
        if fork is not None and fork <= number < fork + DAO_EXTRA_DATA_BLOCKS:
            return DAO_EXTRA_DATA
        return None


MAINNET_CONFIG = ChainConfig(
    chain_id=1,
    activations=MAINNET,
    deposit_contract=MAINNET_DEPOSIT_CONTRACT,
    block_time_ms=12_000,
)
"""The configuration of Ethereum's mainnet."""
