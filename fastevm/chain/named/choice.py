"""Selects the chain by command-line options: a name, a genesis file, or both."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from fastevm.chain.named.registry import find, names
from fastevm.core.primitives.json_file import read_json

CHAIN_HELP = f"a chain by name or id: {', '.join(names())}"


class ChosenChain(NamedTuple):
    """A genesis in geth's format and, for a named chain, its known properties.

    ``block_time_ms``: milliseconds between blocks. ``fixed_block_time``: whether every block comes
    exactly ``block_time_ms`` after its parent. ``genesis_hash``: 32 bytes.
    """

    genesis: Mapping[str, Any]
    block_time_ms: int | None = None
    fixed_block_time: bool = False
    genesis_hash: bytes | None = None


def chosen_chain(
    name: str | None, path: Path | None, *, amsterdam_time: int | None = None
) -> ChosenChain | None:
    """Returns the chain ``name``, or None if neither ``name`` nor ``path`` is given.

    The genesis is that of the file ``path`` if given, else that of this package. If only ``path``
    is given, the file's own ``config`` defines the chain. ``amsterdam_time`` overrides the start of
    Amsterdam (Unix seconds).

    Raises ValueError or OSError for an unknown name, a genesis that is not in the package, an
    invalid file, and for ``amsterdam_time`` on a chain without Amsterdam.
    """
    if name is None:
        return None if path is None else ChosenChain(_amended(read_genesis(path), amsterdam_time))
    chain = find(name)
    genesis = chain.genesis() if path is None else chain.completed(read_genesis(path))
    return ChosenChain(
        _amended(genesis, amsterdam_time), chain.block_time_ms, chain.fixed_block_time,
        chain.genesis_hash,
    )  # fmt: skip


def _amended(genesis: dict[str, Any], amsterdam_time: int | None) -> dict[str, Any]:
    """Returns the genesis with Amsterdam at ``amsterdam_time``; unchanged if that is None."""
    if amsterdam_time is None:
        return genesis
    config = genesis.get("config") or {}
    if config.get("optimism") is not None:
        raise ValueError("a chain of the OP stack has no fork Amsterdam")
    return {**genesis, "config": {**config, "amsterdamTime": amsterdam_time}}


def read_genesis(path: Path) -> dict[str, Any]:
    """Returns the JSON of a genesis file. Raises ValueError, with the file's name, if invalid."""
    try:
        found = read_json(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path}: not a JSON file: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"{path}: expected an object")
    return found
