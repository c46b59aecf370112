"""Command-line options of the explorer, and the start of a standalone explorer."""

import argparse
from importlib import import_module
from typing import Final

from fastevm.rpc.explorer.node_url import check_node_url
from fastevm.rpc.transport.access import lower

MODULE: Final = "fastevm.rpc.explorer.alone"  # a name, because importing the module loads aiohttp


def add_explorer(group: argparse._ArgumentGroup) -> None:
    """Add the option ``--explorer`` to a group."""
    group.add_argument(
        "--explorer",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="give browsers a page at / that shows slices, blocks and transactions (on loopback:"
        " yes, on other addresses: no)",
    )


def add_explorer_for(group: argparse._ArgumentGroup) -> None:
    """Add the option ``--explorer-for``. If it is given, call `watch`."""
    group.add_argument(
        "--explorer-for",
        type=node_url,
        metavar="URL",
        help="serve only that page, for the node at this URL, and start no chain",
    )


def node_url(text: str) -> str:
    try:
        return check_node_url(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def watch(arguments: argparse.Namespace) -> int:
    """Serve the page for another node until SIGINT or SIGTERM. Returns 1 if binding fails."""
    status: int = import_module(MODULE).serve_alone(
        arguments.explorer_for,
        arguments.host,
        arguments.port,
        lower(arguments.allow_host),
        quiet=arguments.quiet,
    )
    return status
