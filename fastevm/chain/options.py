"""The command line options of the chain side, and what they ask of a node."""

import argparse
import asyncio
from pathlib import Path
from typing import Any

from fastevm.chain.accounts import ETHER
from fastevm.chain.following import first_block
from fastevm.chain.kzg import find_trusted_setup
from fastevm.chain.node import Mining, Node


def add_chain_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of block production, the pool and following."""
    chain = parser.add_argument_group("block production")
    modes = chain.add_mutually_exclusive_group()
    modes.add_argument(
        "--no-mining", action="store_true", help="make blocks only on demand (evm_mine)"
    )
    modes.add_argument(
        "--instant", action="store_true", help="make a block for every transaction at once"
    )
    chain.add_argument(
        "--genesis-time", type=int, metavar="SECONDS",
        help="timestamp of the development chain's first block (now)",
    )  # fmt: skip
    pool = parser.add_argument_group("transaction pool")
    pool.add_argument(
        "--tx-fee-cap", type=float, default=1.0, metavar="ETHER",
        help="refuse transactions that offer more for their gas; 0: no cap (%(default)s)",
    )  # fmt: skip
    pool.add_argument(
        "--trusted-setup", type=Path, metavar="FILE",
        help="KZG setup for blob transactions (FASTEVM_TRUSTED_SETUP, else of eth-account)",
    )  # fmt: skip
    follow = parser.add_argument_group("following another node")
    follow.add_argument(
        "--upstream-url", metavar="URL",
        help="JSON-RPC (http or ws) of the node whose canonical blocks are followed",
    )  # fmt: skip
    follow.add_argument(
        "--preconf-url", metavar="URL",
        help="WebSocket of the feed whose slices are pre-confirmed here (needs --upstream-url)",
    )  # fmt: skip
    follow.add_argument(
        "--poll-interval", type=int, default=200, metavar="MS",
        help="milliseconds between questions for new upstream blocks (%(default)s)",
    )  # fmt: skip


def node_options(arguments: argparse.Namespace, mining: Mining) -> dict[str, Any]:
    """What ``dev_node`` and ``genesis_node`` take of these options; ``mining`` unless they say so.

    ValueError or OSError for what cannot be.
    """
    if arguments.preconf_url and not arguments.upstream_url:
        raise ValueError("--preconf-url needs --upstream-url")
    if arguments.upstream_url:
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
        "trusted_setup": find_trusted_setup(arguments.trusted_setup),
    }


def genesis_time(arguments: argparse.Namespace) -> int | None:
    """When the development chain begins: the upstream's, or as the option says (seconds)."""
    if arguments.upstream_url and arguments.genesis_time is None:
        found = asyncio.run(first_block(arguments.upstream_url))
        return int(found["timestamp"], 16)
    stated: int | None = arguments.genesis_time
    return stated


def follow_upstream(node: Node, arguments: argparse.Namespace) -> None:
    """Make the node follow where the options say so."""
    if arguments.upstream_url:
        node.follow(arguments.upstream_url, arguments.preconf_url, poll_ms=arguments.poll_interval)
