"""The chains of ``chains.json``, and their geneses.

Source of the OP-stack chains: the superchain registry (2026-08-04, Base as of its removal there)
and Base's own fork times from docs.base.org; of Ethereum's chains: go-ethereum's ``params`` and
``core/genesis_alloc.go``. A test holds the hash of every genesis against the file's.
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
    """A name or chain id that the registry does not have; the text lists the names."""


class GenesisUnavailable(FastevmError, ValueError):
    """A genesis that the package does not hold, or that no file can hold; the text has why."""


class NamedChain(Struct, frozen=True, kw_only=True):
    """A chain of the registry.

    ``title``: its name in prose; ``aliases``: other names that ``find`` takes. ``block_time_ms``:
    milliseconds from block to block. ``genesis_number`` and ``genesis_hash`` (32 bytes): of the
    first block whose rules are known. ``fork_config``: the ``config`` object of a genesis file in
    geth's format. ``absent``: why no genesis file can exist, else None.
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
        """Whether every block comes just the block time after its parent, as on the OP stack."""
        return "optimism" in self.fork_config

    @property
    def has_genesis(self) -> bool:
        """Whether the package holds the genesis state."""
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
        """The genesis in geth's format: ``config``, ``alloc`` and the members of the header.

        GenesisUnavailable where the package does not hold it.
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
        """``genesis`` (parsed JSON) with the forks of this chain as its ``config``."""
        return {**genesis, "config": dict(self.fork_config)}

    @property
    def _file(self) -> Path:
        return DATA / "genesis" / f"{self.name}.json.xz"


@cache
def chains() -> tuple[NamedChain, ...]:
    """All chains of the registry, Ethereum's first."""
    found = json.loads((DATA / "chains.json").read_text())
    return tuple(_read(name, members) for name, members in found.items())


def names() -> tuple[str, ...]:
    """The names of all chains, in the order of ``chains``."""
    return tuple(one.name for one in chains())


def find(chain: str | int) -> NamedChain:
    """The chain with this name, alias or chain id; capitals and ``_`` or ``-`` do not matter.

    UnknownChain for another one.
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
    for one in chains():
        keys: list[str | int] = [one.name, *one.aliases, str(one.chain_id), one.chain_id]
        found.update(dict.fromkeys(keys, one))
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
