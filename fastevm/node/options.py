"""Command line options of block building, storage, pool and sync."""

import argparse
import asyncio
import logging
from pathlib import Path
from typing import Any

import fastevm.node.following as sync
from fastevm.chain.retention import MIN_STATES, ChainLimits, block_threads
from fastevm.chain.storage import DataDirectory, Fsync
from fastevm.core.primitives.duration import read_duration
from fastevm.errors import FastevmError
from fastevm.node import op_stack
from fastevm.node.dev_accounts import ETHER
from fastevm.node.node import Mining, Node
from fastevm.node.pool.kzg import find_trusted_setup
from fastevm.node.remote.options import add_fork_arguments
from fastevm.rpc_types.feed import compress
from fastevm.rpc_types.feed_formats import FeedFormat

log = logging.getLogger(__name__)

MOST_THREADS = 16  # per block
START_OVER, STOP = "start-over", "stop"
MILLISECONDS = 1_000
KEPT_STATES = 16_384  # states of a fork that may run for months: 90 MB if its blocks are empty


def add_chain_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of block production, storage, pool and following."""
    _add_production(parser.add_argument_group("block production"))
    _add_storage(parser.add_argument_group("storage"))
    _add_pool(parser.add_argument_group("transaction pool"))
    _add_feed(parser.add_argument_group("feed of slices"))
    _add_following(parser.add_argument_group("following another node"))
    add_fork_arguments(parser)


def _add_production(group: argparse._ArgumentGroup) -> None:
    modes = group.add_mutually_exclusive_group()
    modes.add_argument(
        "--no-mining", action="store_true", help="make blocks only on demand (evm_mine)"
    )
    modes.add_argument("--instant", action="store_true", help="make a block for every transaction")
    group.add_argument(
        "--genesis-time", type=int, metavar="SECONDS",
        help="timestamp of the development chain's first block (now)",
    )  # fmt: skip
    group.add_argument(
        "--op", action="store_true",
        help="the development chain is one of the OP stack, above a simulated L1",
    )  # fmt: skip
    names = op_stack.OP_FORK_NAMES
    group.add_argument(
        "--op-fork", choices=names, metavar="NAME",
        help=f"with --op: the rules of the chain, {names[0]} to {names[-1]}"
        f" ({op_stack.DEFAULT_OP_FORK})",
    )  # fmt: skip
    group.add_argument(
        "--base", action="store_true",
        help="the development chain is one of Base, with native tokens (B20), above a simulated L1",
    )  # fmt: skip
    names = op_stack.BASE_FORK_NAMES
    group.add_argument(
        "--base-fork", choices=names, metavar="NAME",
        help=f"with --base: the rules of the chain, {names[0]} to {names[-1]}, which has a block"
        f" every 200 ms ({op_stack.DEFAULT_BASE_FORK})",
    )  # fmt: skip


def add_directory_arguments(group: argparse._ArgumentGroup) -> None:
    """Adds the options of the data directory."""
    group.add_argument(
        "--datadir", type=Path, metavar="DIR",
        help="store the chain in this directory, and load it from there (default: not stored)",
    )  # fmt: skip
    group.add_argument(
        "--fsync", choices=[item.value for item in Fsync], default=Fsync.EVERYSEC.value,
        help="when --datadir waits for the disk, which matters to a machine that loses power"
        " (%(default)s)",
    )  # fmt: skip
    group.add_argument(
        "--full-replay", action="store_true",
        help="execute every block of --datadir again at the start instead of loading the"
        " newest snapshot, so that old states can be read",
    )  # fmt: skip


def _add_storage(group: argparse._ArgumentGroup) -> None:
    add_directory_arguments(group)
    group.add_argument(
        "--states", type=_state_count, metavar="N",
        help="states of the newest blocks that stay in memory, for reads and traces of old blocks;"
        f" fewer where these blocks used much gas ({ChainLimits().states}; {KEPT_STATES} on a fork"
        " in --datadir)",
    )  # fmt: skip
    group.add_argument(
        "--block-threads", type=_thread_count, default=block_threads(), metavar="N",
        help="threads that execute the transactions of one block that is imported, followed or"
        " replayed (%(default)s: the processors, at most 8)",
    )  # fmt: skip


def _milliseconds(text: str) -> int:
    try:
        return max(1, round(read_duration(text, unit="ms") * MILLISECONDS))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _state_count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < MIN_STATES:
        raise argparse.ArgumentTypeError(
            f"invalid value {text!r}: expected a number >= {MIN_STATES}"
        )
    return int(text)


def _thread_count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= MOST_THREADS:
        raise argparse.ArgumentTypeError(f"invalid value {text!r}: expected 1 to {MOST_THREADS}")
    return int(text)


def _add_pool(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--tx-fee-cap", "--rpc-txfeecap", type=float, default=1.0, metavar="ETHER",
        help="refuse transactions that offer more for their gas; 0: no cap (%(default)s)",
    )  # fmt: skip
    group.add_argument(
        "--disable-tx-gas-limit", action="store_true",
        help="take transactions of more gas than the rules allow each (EIP-7825: 16777216), and"
        " blocks with them",
    )  # fmt: skip
    group.add_argument(
        "--allow-unprotected-txs", action="store_true",
        help="take legacy transactions without a chain id, which any chain could repeat (EIP-155)",
    )  # fmt: skip
    group.add_argument(
        "--trusted-setup", type=Path, metavar="FILE",
        help="KZG setup for blob transactions (FASTEVM_TRUSTED_SETUP, else eth-account's)",
    )  # fmt: skip


def _add_feed(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--feed-format", choices=[item.value for item in FeedFormat],
        default=FeedFormat.FASTEVM.value,
        help="form of the messages at /feed: flashblocks as Unichain sends them, subblocks as OP"
        " Mainnet does, or fastevm, which names the message before (%(default)s)",
    )  # fmt: skip
    group.add_argument(
        "--feed-brotli", action="store_true",
        help="pack every message with Brotli, as public feeds do (on request: /feed?compress=br)",
    )  # fmt: skip


def configure_feed(node: Node, arguments: argparse.Namespace) -> None:
    """Configures the feed from the options. Raises ValueError if the package brotli is missing."""
    node.feed.form = FeedFormat(arguments.feed_format)
    if arguments.feed_brotli:
        try:
            compress("")
        except FastevmError as error:
            raise ValueError(str(error)) from error
        node.feed.always_packed = True


def _add_following(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--upstream-url", metavar="URL",
        help="JSON-RPC (http or ws) of the node whose canonical blocks are followed",
    )  # fmt: skip
    group.add_argument(
        "--preconf-url", metavar="URL",
        help="WebSocket of the feed whose slices are pre-confirmed here (needs --upstream-url)",
    )  # fmt: skip
    group.add_argument(
        "--poll-interval", type=_milliseconds, default=200, metavar="TIME",
        help="time between requests for new upstream blocks, such as 200ms; a number is in"
        " milliseconds (%(default)s)",
    )  # fmt: skip
    group.add_argument(
        "--foreign-chain", choices=(START_OVER, STOP), default=START_OVER,
        help="what to do when the upstream turns out to be on another chain: follow that one, the"
        " files of the old one put aside, or end with an error (%(default)s)",
    )  # fmt: skip


def node_options(arguments: argparse.Namespace, mining: Mining) -> dict[str, Any]:
    """Returns keyword arguments of ``dev_node`` and ``genesis_node`` for these options.

    ``mining``: the value to use if no option sets it. Raises ValueError or OSError for options that
    contradict each other or are unusable.
    """
    if arguments.follow and not arguments.fork_url:
        raise ValueError("--follow needs --fork-url")
    if arguments.preconf_url and not (arguments.upstream_url or arguments.follow):
        raise ValueError("--preconf-url needs --upstream-url, or --fork-url with --follow")
    if arguments.upstream_url or arguments.follow:
        if arguments.instant or arguments.no_mining:
            raise ValueError("a node that follows another makes no blocks")
        mining = Mining.NEVER
    elif arguments.instant:
        mining = Mining.INSTANT
    elif arguments.no_mining:
        mining = Mining.MANUAL
    return {
        "mining": mining,
        "fee_cap": int(arguments.tx_fee_cap * ETHER),
        "allows_unprotected": arguments.allow_unprotected_txs,
        "trusted_setup": find_trusted_setup(arguments.trusted_setup),
        "limits": ChainLimits(
            states=arguments.states or default_states(arguments), threads=arguments.block_threads
        ),
    }


def default_states(arguments: argparse.Namespace) -> int:
    """Returns how many states stay in memory by default."""
    kept = arguments.fork_url and arguments.datadir
    return KEPT_STATES if kept else ChainLimits().states


def op_fork_of(arguments: argparse.Namespace) -> str | None:
    """Returns the OP Stack or Base fork of the development chain, or None for an Ethereum chain."""
    if arguments.base:
        return arguments.base_fork or op_stack.DEFAULT_BASE_FORK
    return (arguments.op_fork or op_stack.DEFAULT_OP_FORK) if arguments.op else None


def open_directory(arguments: argparse.Namespace) -> DataDirectory | None:
    """Opens the data directory of ``--datadir``. Raises ValueError or OSError if it is unusable."""
    if arguments.datadir is None:
        return None
    fsync, full_replay = Fsync(arguments.fsync), arguments.full_replay
    return DataDirectory(arguments.datadir, fsync=fsync, full_replay=full_replay)


def abandon_chain(arguments: argparse.Namespace) -> None:
    """Moves the chain in the data directory to a separate directory."""
    directory = open_directory(arguments)
    if directory is not None:
        try:
            aside = directory.abandon()
        finally:
            directory.close()
        log.warning("the chain that was followed before is kept in %s", aside)


def genesis_time(
    arguments: argparse.Namespace, directory: DataDirectory | None = None
) -> int | None:
    """Returns the timestamp of the development chain's genesis in seconds.

    The timestamp comes from the option or, for a new chain that follows an upstream, from the
    upstream. None if neither determines it.
    """
    known = directory is not None and directory.genesis is not None
    if arguments.upstream_url and arguments.genesis_time is None and not known:
        found = asyncio.run(sync.fetch_block(arguments.upstream_url))
        return int(found["timestamp"], 16)
    stated: int | None = arguments.genesis_time
    return stated


def follow_upstream(node: Node, arguments: argparse.Namespace) -> None:
    """Makes the node follow the upstream that the options name."""
    url = arguments.upstream_url
    if arguments.follow and node.history is not None:
        url = node.history.options.first_url
    if url:
        age = arguments.pending_max_age / MILLISECONDS
        poll = arguments.poll_interval
        node.follow(url, arguments.preconf_url, poll_ms=poll, pending_age=age)
