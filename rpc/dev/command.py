"""``fastevm dev``: from its options to a running node."""

from __future__ import annotations

import argparse
import logging
import sys
from typing import Any

from fastevm import node as nodes
from fastevm.rpc.command import access_of, serve_node
from fastevm.rpc.dev.options import add_arguments
from fastevm.rpc.transport.server import client_version

ETHER = 10**18
COMPATIBLE = "anvil/v1.7.1"
"""How web3_clientVersion begins: development tools look for this name to choose their methods."""

__all__ = ["add_arguments", "run"]


def run(arguments: argparse.Namespace) -> int:
    """Serve the development node that the options describe until told to stop; 1 on bad input."""
    logging.basicConfig(
        level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    try:
        access = access_of(arguments)
        client = f"{COMPATIBLE} ({client_version()})"
        serve_node(node_of(arguments), arguments, access, client=client, estimates_on_pending=True)
    except (ValueError, OSError) as error:
        print(f"fastevm dev: {error}", file=sys.stderr)
        return 1
    return 0


def node_of(arguments: argparse.Namespace) -> Any:
    """The node that the options ask for. ValueError for a chain that cannot be."""
    return nodes.dev_node(
        mining=nodes.Mining.INSTANT,
        accounts=arguments.accounts,
        balance=arguments.balance * ETHER,
        chain_id=arguments.chain_id,
        gas_limit=arguments.gas_limit,
        base_fee=arguments.block_base_fee_per_gas,
        timestamp=arguments.timestamp,
        create2_proxy=True,
        caps_gas=arguments.enable_tx_gas_limit,
        shares_seconds=True,
        fee_cap=0,
        allows_unprotected=True,
        trusted_setup=nodes.find_trusted_setup(),
    )
