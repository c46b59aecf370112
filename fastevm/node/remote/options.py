"""Command line options of a forked chain. Names, units and defaults are anvil's."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from fastevm.fork.block_choice import BlockLike, read_block, split_block
from fastevm.fork.pinned_block import PinnedBlock
from fastevm.fork.rate_limit import DEFAULT_UNITS_PER_SECOND
from fastevm.fork.request_defaults import DEFAULT_BACKOFF, DEFAULT_RETRIES, DEFAULT_TIMEOUT

MILLISECONDS: Final = 1_000
HASH: Final = "0x[0-9a-fA-F]{64}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkOptions:
    """The start of a forked chain, and the options of requests to its upstream.

    ``transaction``: hash (32 bytes) of the transaction before which the chain forks. ``chain_id``:
    the chain id that the upstream must have. ``hardfork``: name of the fork to use if the chain's
    rules are unknown. ``backoff`` and ``timeout``: seconds. ``cache``: the directory of the cache,
    or False for no cache. ``guarded``: refuse link-local addresses and metadata services, for a URL
    from a request. ``kept`` and ``resumed``: see ``RemoteSource.open``.
    """

    urls: tuple[str, ...]
    block: BlockLike = "latest"
    transaction: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    chain_id: int | None = None
    hardfork: str | None = None
    backoff: float = DEFAULT_BACKOFF
    retries: int = DEFAULT_RETRIES
    timeout: float = DEFAULT_TIMEOUT
    compute_units_per_second: float = DEFAULT_UNITS_PER_SECOND
    rate_limit: bool = True
    cache: bool | Path = True
    offline: bool = False
    guarded: bool = False
    kept: bool = False
    resumed: PinnedBlock | None = None

    def for_request(self, url: str) -> ForkOptions:
        """Returns the options for a URL from a request: guarded, and without secret headers.

        A URL that the operator gave keeps the operator's options.
        """
        if url in self.urls:
            return replace(self, urls=(url,))
        return replace(self, urls=(url,), headers={}, guarded=True)

    @property
    def first_url(self) -> str:
        """Returns the first URL, without the ``@BLOCK`` at its end."""
        return split_block(self.urls[0])[0]

    def of_source(self) -> dict[str, Any]:
        """Returns the keyword arguments of ``RemoteSource.open``."""
        names = ("headers", "chain_id", "backoff", "retries", "timeout", "rate_limit", "cache")
        more = ("compute_units_per_second", "offline", "guarded", "kept", "resumed")
        return {name: getattr(self, name) for name in names + more} | {"progress": False}


def add_fork_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of a chain that is forked from another node's chain."""
    group = parser.add_argument_group("fork of another node's chain")
    _add_location(group)
    _add_following(group)
    _add_requests(group)
    _add_cache(group)


def _add_location(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "-f", "--fork-url", "--rpc-url", action="append", metavar="URL[@BLOCK]",
        help="JSON-RPC of the node with whose state and blocks this chain begins; may be repeated:"
        " the addresses share the requests",
    )  # fmt: skip
    group.add_argument(
        "--fork-block-number", "--fork-block", metavar="N|-N|HASH",
        help="the block to begin after: its number, how many before the newest, its hash or a tag"
        " (latest)",
    )  # fmt: skip
    group.add_argument(
        "--fork-transaction-hash", type=_hash, metavar="HASH",
        help="fork before this transaction, after the earlier ones in its block",
    )  # fmt: skip
    group.add_argument(
        "--fork-chain-id", type=int, metavar="N", help="chain id that the upstream must have"
    )
    group.add_argument(
        "--hardfork", metavar="NAME",
        help="hardfork of every block (the newest; on a fork that of its chain, if known)",
    )  # fmt: skip


def _add_following(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--follow", action="store_true",
        help="build no blocks: execute each new block of the upstream on state that is fetched"
        " as it is read, and compare gas, receipts and logs with its header",
    )  # fmt: skip


def _add_requests(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--fork-header", action="append", type=_header, default=[], metavar="'NAME: VALUE'",
        help="HTTP header of every request to the upstream; may be repeated",
    )  # fmt: skip
    group.add_argument(
        "--fork-retry-backoff", type=int, default=int(DEFAULT_BACKOFF * MILLISECONDS), metavar="MS",
        help="milliseconds before the first retry of a failed request (%(default)s)",
    )  # fmt: skip
    group.add_argument(
        "--retries", type=int, default=DEFAULT_RETRIES, metavar="N",
        help="retries of a failed request (%(default)s)",
    )  # fmt: skip
    group.add_argument(
        "--timeout", type=int, default=int(DEFAULT_TIMEOUT * MILLISECONDS), metavar="MS",
        help="milliseconds that a request may take (%(default)s)",
    )  # fmt: skip
    group.add_argument(
        "--compute-units-per-second", "--cups", type=int, default=int(DEFAULT_UNITS_PER_SECOND),
        metavar="N", help="compute units per second that the provider allows (%(default)s)",
    )  # fmt: skip
    group.add_argument(
        "--no-rate-limit", "--no-rpc-rate-limit", action="store_true",
        help="do not limit the rate of requests",
    )  # fmt: skip


def _add_cache(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--no-storage-caching", action="store_true", help="do not cache fetched state on disk"
    )
    group.add_argument(
        "--cache-path", type=Path, metavar="DIR", help="cache fetched state in this directory"
    )
    group.add_argument(
        "--fork-offline", action="store_true",
        help="send no requests: state that is not cached is an error",
    )  # fmt: skip


def fork_options(arguments: argparse.Namespace) -> ForkOptions | None:
    """Returns the options of the fork, or None without ``--fork-url``.

    Raises ValueError for options that contradict each other.
    """
    if not arguments.fork_url:
        _refuse_alone(arguments)
        return None
    blocks = {split_block(url)[1] for url in arguments.fork_url} - {None}
    stated = arguments.fork_block_number
    if stated is not None:
        blocks.add(read_block(stated))
    if len(blocks) > 1:
        raise ValueError("--fork-url and --fork-block-number name different blocks")
    transaction = arguments.fork_transaction_hash
    if blocks and transaction is not None:
        raise ValueError("--fork-transaction-hash already determines the block")
    # no cache with --follow, because the base block changes often
    kept = not (arguments.no_storage_caching or arguments.follow)
    return ForkOptions(
        urls=tuple(arguments.fork_url),
        block="latest" if stated is None else stated,
        transaction=transaction,
        headers=dict(arguments.fork_header),
        chain_id=arguments.fork_chain_id,
        hardfork=arguments.hardfork,
        backoff=arguments.fork_retry_backoff / MILLISECONDS,
        retries=arguments.retries,
        timeout=arguments.timeout / MILLISECONDS,
        compute_units_per_second=arguments.compute_units_per_second,
        rate_limit=not arguments.no_rate_limit,
        cache=kept and (arguments.cache_path or True),
        offline=arguments.fork_offline,
    )


def _refuse_alone(arguments: argparse.Namespace) -> None:
    """Raises ValueError for options that have no effect without ``--fork-url``."""
    for name in ("block_number", "transaction_hash", "chain_id", "header", "offline"):
        if getattr(arguments, f"fork_{name}") not in (None, [], False):
            raise ValueError(f"--fork-{name.replace('_', '-')} needs --fork-url")


def _hash(text: str) -> bytes:
    if not re.fullmatch(HASH, text):
        raise argparse.ArgumentTypeError(
            f"invalid transaction hash {text!r}: expected 0x and 64 hex digits"
        )
    return bytes.fromhex(text[2:])


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise argparse.ArgumentTypeError("a header has the form 'NAME: VALUE'")
    return name.strip(), value.strip()
