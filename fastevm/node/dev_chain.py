"""The genesis of a development chain: its rules, its funded accounts and its first block."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from fastevm.chain.config import ChainConfig
from fastevm.chain.genesis import DEFAULT_DIFFICULTY, genesis_block
from fastevm.chain.system_contracts import BUILDER_CONTRACTS, SYSTEM_CONTRACTS
from fastevm.core.spec.forks import (
    AMSTERDAM,
    CONSTANTINOPLE,
    DAO,
    FORKS,
    OSAKA,
    PARIS,
    PETERSBURG,
    Fork,
    fork_named,
)
from fastevm.errors import UnknownForkError
from fastevm.node import op_stack
from fastevm.node.dev_accounts import DEV_BALANCE, DevAccount
from fastevm.node.production.attributes import EXTRA_DATA
from fastevm.node.remote.chain_start import ChainStart

DEV_CHAIN_ID: Final = 31_337
DEV_GAS_LIMIT: Final = 60_000_000
STATE_GAS_LIMIT: Final = 200_000_000
"""Gas limit in forks with state gas for code (EIP-8037): the longest contract uses half of it."""
DEV_BASE_FEE: Final = 10**9
DEFAULT_FORK: Final = OSAKA
NEVER: Final = 2**63 - 1  # a block number that is never reached
LATEST: Final = "latest"  # alias of the newest fork
NO_WORK: Final = {
    "block_reward_gwei": 0, "bomb_delay_blocks": NEVER, "difficulty_divisor": NEVER,
}  # fmt: skip
"""Proof-of-work rules of a development chain: no reward, as on anvil, and a fixed difficulty."""

CREATE2_PROXY: Final = "0x4e59b44847b379578588920ca78fbf26c0b4956c"
"""The deterministic deployment proxy, which tools use to deploy with CREATE2 on every chain."""
CREATE2_PROXY_CODE: Final = (
    "0x7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0360160008160208237"
    "8035828234f58015156039578182fd5b8082525050506014600cf3"
)


class DevChain(Struct, frozen=True, kw_only=True):
    """The configuration of a development chain. The newest rules are the default.

    ``balance``: wei of each account. ``base_fee`` (wei), ``timestamp`` (seconds; None: now) and
    ``number`` describe the first block. ``gas_limit`` applies to all blocks (None: the fork's
    default). ``hardfork``: a mainnet fork by a name that `fork_named` knows, or ``latest``; a chain
    with rules before the merge has a difficulty and no block reward. A fork of Base is used as
    ``op_fork``. ``op_fork``: the rules of a fork of the OP Stack or of Base. ``create2_proxy``:
    deploy the deterministic deployment proxy. ``genesis_file``: a genesis in geth's format. Its
    members, accounts and forks override the other arguments, except a given chain id.
    """

    chain_id: int | None = None
    balance: int = DEV_BALANCE
    gas_limit: int | None = None
    base_fee: int = DEV_BASE_FEE
    timestamp: int | None = None
    number: int = 0
    hardfork: str | None = None
    op_fork: str | None = None
    create2_proxy: bool = True
    genesis_file: Mapping[str, Any] | None = None

    def genesis(self, accounts: Sequence[DevAccount]) -> dict[str, Any]:
        """Returns the genesis in geth's format.

        Raises ValueError for a fork that the OP Stack does not have.
        """
        balance = {"balance": hex(self.balance)}
        alloc: dict[str, Any] = {"0x" + account.address.hex(): balance for account in accounts}
        alloc |= SYSTEM_CONTRACTS
        if FORKS.index(self.fork) >= FORKS.index(AMSTERDAM):
            alloc |= BUILDER_CONTRACTS
        if self.create2_proxy:
            alloc[CREATE2_PROXY] = {"nonce": "0x1", "code": CREATE2_PROXY_CODE}
        genesis: dict[str, Any] = {
            "config": {"chainId": DEV_CHAIN_ID, **self._forks()},
            "alloc": alloc,
            "difficulty": hex(0 if _is_merged(self.fork) else DEFAULT_DIFFICULTY),
            "gasLimit": hex(
                self.gas_limit or usual_gas_limit(self.layer2_fork or self.hardfork, DEV_GAS_LIMIT)
            ),
            "baseFeePerGas": hex(self.base_fee),
            "timestamp": hex(int(time.time()) if self.timestamp is None else self.timestamp),
            "number": hex(self.number),
            "extraData": "0x" + EXTRA_DATA.hex(),
        }
        genesis = _merged(genesis, self.genesis_file or {})
        if self.chain_id is not None:
            genesis["config"]["chainId"] = self.chain_id
        fork = self.layer2_fork
        return genesis if fork is None else op_stack.op_stack_genesis(genesis, fork)

    @property
    def layer2_fork(self) -> str | None:
        """The OP Stack or Base fork of all blocks, or None on a chain with Ethereum's rules."""
        if self.op_fork is not None:
            return self.op_fork
        name = (self.hardfork or "").casefold()
        return name if name in op_stack.BASE_FORK_NAMES else None

    @property
    def block_millis(self) -> int | None:
        """The block time in milliseconds that the rules require, or None."""
        return None if self.layer2_fork is None else op_stack.block_millis(self.layer2_fork)

    @property
    def fork(self) -> Fork:
        """The Ethereum fork of all blocks. Raises ValueError if the name is not a mainnet fork."""
        if self.hardfork is None or self.hardfork.lower() == LATEST or self.layer2_fork is not None:
            return DEFAULT_FORK
        try:
            found = fork_named(self.hardfork)
        except UnknownForkError as error:
            raise ValueError(f"hardfork: {error}") from None
        if found not in FORKS:
            raise ValueError(f"hardfork: {found.name} is a fork of the OP stack")
        return found

    @property
    def parameters(self) -> dict[str, int]:
        """The parameters that differ from mainnet's rules, by name."""
        return {} if _is_merged(self.fork) else dict(NO_WORK)

    def _forks(self) -> dict[str, int]:
        """Returns the members of ``config`` that activate every fork at the first block."""
        fork = self.fork
        keys = [item.config_key for item in FORKS[: FORKS.index(fork) + 1]]
        forks = {key: 0 for key in keys if key not in ("", DAO.config_key)}
        # Constantinople includes Petersburg unless Petersburg has a block of its own
        if fork is CONSTANTINOPLE:
            forks[PETERSBURG.config_key] = NEVER
        return forks | ({"mergeNetsplitBlock": 0} if _is_merged(fork) else {})

    def start(self, accounts: Sequence[DevAccount]) -> ChainStart:
        genesis = self.genesis(accounts)
        config = ChainConfig.from_genesis(genesis)
        return ChainStart(config, *genesis_block(genesis, config))


def _is_merged(fork: Fork) -> bool:
    return FORKS.index(fork) >= FORKS.index(PARIS)


def _merged(genesis: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns ``genesis`` with the members of ``given``.

    Raises ValueError for a value that is no object.
    """
    merged = {**genesis, **given}
    for name in ("config", "alloc"):
        members = given.get(name) or {}
        if not isinstance(members, Mapping):
            raise ValueError(f"{name}: expected an object")
        if name == "alloc":
            members = {"0x" + key.removeprefix("0x").lower(): item for key, item in members.items()}
        merged[name] = {**genesis[name], **members}
    return merged


def usual_gas_limit(hardfork: str | None, before: int) -> int:
    """Returns the block gas limit of a development chain.

    ``before``: the limit for forks before state gas and for the OP Stack. On a chain of Base,
    returns Base's limit. Raises ValueError if the name is not a fork.
    """
    name = (hardfork or "").casefold()
    if name in op_stack.BASE_FORK_NAMES:
        return op_stack.base_gas_limit(name)
    if name in op_stack.OP_FORK_NAMES:
        return before
    fork = DevChain(hardfork=hardfork).fork
    return before if FORKS.index(fork) < FORKS.index(AMSTERDAM) else STATE_GAS_LIMIT
