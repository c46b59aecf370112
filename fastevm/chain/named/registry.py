"""The chains of ``chains.json`` and their genesis states.

Sources for OP Stack chains: the superchain registry (2026-08-04; for Base the last version that
had this chain) and Base's fork times from docs.base.org. Sources for Ethereum's chains: ``params``
and ``core/genesis_alloc.go`` of go-ethereum. A test compares the hash of every genesis with the
file.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from fastevm.chain.config import DEFAULT_SLICE_INTERVAL_MS, MS_PER_SECOND, ChainConfig
from fastevm.core.primitives.suggestion import nearest
from fastevm.errors import FastevmError

DATA = Path(__file__).parent


class UnknownChain(FastevmError, ValueError):
    """A name or chain id that is not in the registry. The message lists the names."""


class GenesisUnavailable(FastevmError, ValueError):
    """A genesis that the package does not contain, or that no file can contain.

    The message says why.
    """


class NamedChain(Struct, frozen=True, kw_only=True):
    """A chain of the registry.

    - ``title``: display name
    - ``aliases``: other names that ``find`` accepts
    - ``block_time_ms``: milliseconds between blocks
    - ``genesis_number`` and ``genesis_hash`` (32 bytes): the first block whose rules are known
    - ``fork_config``: ``config`` of a genesis file in geth's format
    - ``absent``: why no genesis file can exist, or None
    """

    name: str
    title: str
    aliases: tuple[str, ...]
    block_time_ms: int
    genesis_number: int
    genesis_hash: bytes
    fork_config: Mapping[str, Any]
    absent: str | None

    @property
    def chain_id(self) -> int:
        """The chain id (EIP-155)."""
        return int(self.fork_config["chainId"])

    @property
    def fixed_block_time(self) -> bool:
        """Whether every timestamp is the parent's plus the block time, as on the OP Stack."""
        return "optimism" in self.fork_config

    @property
    def has_genesis(self) -> bool:
        """Whether the package contains the genesis file."""
        return self._file.is_file()

    def config(self) -> ChainConfig:
        """The constants and forks."""
        return ChainConfig.from_genesis(
            {"config": self.fork_config},
            block_time_ms=self.block_time_ms,
            slice_interval_ms=min(DEFAULT_SLICE_INTERVAL_MS, self.block_time_ms),
            fixed_block_time=self.fixed_block_time,
        )

    def genesis(self) -> dict[str, Any]:
        """Returns the genesis in geth's format: ``config``, ``alloc`` and header members.

        Raises GenesisUnavailable if the package does not contain it.
        """
        if self.absent is not None:
            raise GenesisUnavailable(f"{self.title} has no genesis file: {self.absent}")
        if not self.has_genesis:
            raise GenesisUnavailable(
                f"the genesis state of {self.title} is not in this package: give its genesis file"
                " too (its config is not needed)"
            )
        return self.completed(json.loads(lzma.decompress(self._file.read_bytes())))

    def completed(self, genesis: Mapping[str, Any]) -> dict[str, Any]:
        """Returns ``genesis`` (parsed JSON) with this chain's forks as its ``config``."""
        return {**genesis, "config": dict(self.fork_config)}

    @property
    def _file(self) -> Path:
        return DATA / "genesis" / f"{self.name}.json.xz"


@cache
def chains() -> tuple[NamedChain, ...]:
    """Returns all chains of the registry, Ethereum's first."""
    found = json.loads((DATA / "chains.json").read_text())
    return tuple(_read(name, members) for name, members in found.items())


def names() -> tuple[str, ...]:
    """Returns the names of all chains, in the order of ``chains``."""
    return tuple(chain.name for chain in chains())


def find(chain: str | int) -> NamedChain:
    """Returns the chain with this name, alias or chain id; case and ``_`` or ``-`` are ignored.

    Raises UnknownChain if there is none.
    """
    wanted = chain if isinstance(chain, int) else _normalized(chain)
    found = _by_name().get(wanted)
    if found is None:
        known = [key for key in _by_name() if isinstance(key, str) and not key.isdigit()]
        near = nearest(_normalized(str(chain)), known)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise UnknownChain(f"unknown chain {chain!r}{hint}; known are {', '.join(names())}")
    return found


@cache
def _by_name() -> dict[str | int, NamedChain]:
    found: dict[str | int, NamedChain] = {}
    for chain in chains():
        keys: list[str | int] = [chain.name, *chain.aliases, str(chain.chain_id), chain.chain_id]
        found.update(dict.fromkeys(keys, chain))
    return found


def _normalized(name: str) -> str:
    return name.strip().casefold().replace("_", "-").replace(" ", "-")


def _read(name: str, members: Mapping[str, Any]) -> NamedChain:
    return NamedChain(
        name=name,
        title=members["title"],
        aliases=tuple(members["aliases"]),
        block_time_ms=members["block_seconds"] * MS_PER_SECOND,
        genesis_number=members.get("genesis_number", 0),
        genesis_hash=bytes.fromhex(members["genesis_hash"][2:]),
        fork_config=members["config"],
        absent=members.get("absent"),
    )
