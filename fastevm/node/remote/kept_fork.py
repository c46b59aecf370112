"""A fork in a data directory: the stored description of its first block, and the way to reopen
it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

import fastevm.fork as fork
from fastevm.chain.storage import DataDirectory, StorageError
from fastevm.chain.storage.genesis_file import GENESIS_NAME
from fastevm.core.primitives.hex import hex_bytes
from fastevm.core.primitives.replace import replace
from fastevm.core.spec.parameters import Value
from fastevm.errors import ForkError
from fastevm.fork.block_choice import read_block
from fastevm.fork.pinned_block import PinnedBlock
from fastevm.node.remote.chain_start import ChainStart
from fastevm.node.remote.options import ForkOptions

MEMBER: Final = "fork"  # member of genesis.json
CACHE_NAME: Final = "fork-cache"  # folder of the values that were fetched from the upstream
OFFLINE_URL: Final = "http://offline.invalid"  # a URL that is never requested


class KeptFork(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The first block of a fork, and the options that determine the state after this block.

    ``chain_id``: the chain id of the upstream. ``block``: the JSON object of the block.
    ``transaction``: the fork begins before the upstream's transaction with this hash; the first
    block of the fork repeats the transactions that precede it in its block. ``hardfork``: name of
    the rules; None means the rules that the chain has at the block. ``funded``: balances in wei
    (hex) by address.
    """

    chain_id: int
    block: dict[str, Any]
    transaction: str | None = None
    hardfork: str | None = None
    funded: dict[str, str] = {}
    parameters: dict[str, Value] = {}
    shares_seconds: bool = False

    @property
    def pinned(self) -> PinnedBlock:
        """The block of the fork."""
        return PinnedBlock.read(self.block)

    @property
    def balances(self) -> dict[bytes, int]:
        """The funded accounts: wei by address."""
        return {bytes.fromhex(name[2:]): int(wei, 16) for name, wei in self.funded.items()}

    def genesis(self) -> dict[str, Any]:
        """Returns the genesis that `DataDirectory.claim` stores."""
        return {MEMBER: msgspec.to_builtins(self)}


def is_fork(genesis: Mapping[str, Any]) -> bool:
    """Returns whether a data directory with this genesis holds a fork."""
    return MEMBER in genesis


def stored_fork(directory: DataDirectory) -> KeptFork | None:
    """Returns the fork in a data directory, or None if the directory is empty.

    Raises StorageError if the directory has a chain that is no fork.
    """
    genesis = directory.genesis
    if genesis is None:
        return None
    if not is_fork(genesis):
        raise StorageError(f"{directory.path} holds a chain of its own, not a fork")
    try:
        kept = msgspec.convert(genesis[MEMBER], KeptFork)
        kept.pinned, kept.balances  # noqa: B018 (a wrong value raises)
    except (ValueError, ForkError) as error:
        raise StorageError(f"{directory.path / GENESIS_NAME} is damaged: {error}") from None
    return kept


def refuse_fork(directory: DataDirectory) -> None:
    """Raises StorageError if a data directory holds a fork."""
    genesis = directory.genesis
    if genesis is not None and is_fork(genesis):
        kept = stored_fork(directory)
        assert kept is not None
        raise StorageError(
            f"{directory.path} holds a fork of chain {kept.chain_id} at {kept.pinned}: give the URL"
            " of its upstream (--fork-url), with --fork-offline if it need not answer"
        )


def begun_options(options: ForkOptions, directory: DataDirectory) -> ForkOptions:
    """Returns the options of a new fork whose fetched values stay in the directory."""
    return replace(options, cache=_cache_of(directory.path), kept=True)


def resumed_options(options: ForkOptions, directory: DataDirectory, kept: KeptFork) -> ForkOptions:
    """Returns the options that reopen a stored fork.

    Raises StorageError if ``options`` ask for another block, chain or hardfork.
    """
    pinned = kept.pinned
    chosen = read_block(options.block)
    for name, wanted, stored in (
        ("chain", options.chain_id, kept.chain_id),
        ("hardfork", options.hardfork, kept.hardfork),
        ("block", chosen.number, pinned.number),
        ("block", None if chosen.hash is None else hex_bytes(chosen.hash), hex_bytes(pinned.hash)),
        (
            "transaction",
            None if options.transaction is None else hex_bytes(options.transaction),
            kept.transaction,
        ),
    ):
        if wanted is not None and wanted != stored:
            raise StorageError(
                f"{directory.path} holds a fork with {name} {stored}, not {wanted}: leave the"
                " option out, or give another --datadir"
            )
    return replace(
        begun_options(options, directory),
        block=pinned.hash,
        transaction=None,
        chain_id=kept.chain_id,
        hardfork=kept.hardfork,
        resumed=pinned,
    )


def offline_options(directory: DataDirectory, kept: KeptFork) -> ForkOptions:
    """Returns options that reopen a stored fork without its upstream."""
    options = ForkOptions(urls=(OFFLINE_URL,), offline=True)
    return resumed_options(options, directory, kept)


def kept_fork(
    begin: ChainStart, transaction: bytes | None, funded: Mapping[bytes, int]
) -> KeptFork:
    """Returns the description of a new fork for the data directory. Arguments: see `KeptFork`."""
    history, first = begin.history, begin.block
    assert history is not None
    hardfork = history.options.hardfork
    if hardfork is None and not fork.has_known_rules(history.source):
        schedule = begin.config.activations.at(first.number, first.header.timestamp)
        hardfork = schedule.fork.name
    return KeptFork(
        history.chain_id,
        dict(history.source.header),
        None if transaction is None else hex_bytes(transaction),
        hardfork,
        {hex_bytes(address): hex(wei) for address, wei in funded.items()},
        dict(begin.config.parameters),
        begin.config.shares_seconds,
    )


def _cache_of(path: Path) -> Path:
    return path / CACHE_NAME
