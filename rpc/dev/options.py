"""The options of ``fastevm dev``; names, units and defaults are those of anvil."""

from __future__ import annotations

import argparse
from typing import Final

from fastevm.rpc import command
from fastevm.rpc.explorer.options import add_explorer
from fastevm.rpc.terminal.options import add_terminal_arguments

DEFAULT_GAS_LIMIT: Final = 30_000_000
DEFAULT_BALANCE: Final = 10_000  # ether


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of a development node to a parser."""
    parser.description = (
        "Start a development node: a block for each transaction at once, as anvil and Hardhat make"
        " them. A node whose pending state moves every 200 ms: fastevm node."
    )
    command.add_listeners(parser.add_argument_group("listeners"))
    command.add_access(parser.add_argument_group("access"))
    add_explorer(parser.add_argument_group("explorer"))
    _add_accounts(parser.add_argument_group("accounts"))
    _add_chain(parser.add_argument_group("chain"))
    command.add_logs(parser.add_argument_group("logs"))
    command.add_calls(parser.add_argument_group("calls"))
    parser.add_argument("-j", "--threads", type=int, metavar="N", help="worker threads (all cores)")
    add_terminal_arguments(parser, tells=True)
    parser.set_defaults(usage_error=parser.error, dialect="geth", pending_max_age=0)


def _add_accounts(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "-a", "--accounts", type=int, default=10, metavar="N", help="funded accounts (%(default)s)"
    )
    group.add_argument(
        "--balance", type=command.count, default=DEFAULT_BALANCE, metavar="ETHER",
        help="of each of them (%(default)s)",
    )  # fmt: skip


def _add_chain(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--chain-id", type=command.chain_id, default=31_337, metavar="N",
        help="in decimal or as 0x and hex (%(default)s)",
    )  # fmt: skip
    group.add_argument(
        "--gas-limit", type=command.count, default=DEFAULT_GAS_LIMIT, metavar="GAS",
        help="of each block (%(default)s)",
    )  # fmt: skip
    group.add_argument(
        "--enable-tx-gas-limit", action="store_true",
        help="refuse transactions of more gas than the rules allow each (EIP-7825: 16777216)",
    )  # fmt: skip
    group.add_argument(
        "--block-base-fee-per-gas", "--base-fee", type=command.number, default=10**9, metavar="WEI",
        help="of the first block (%(default)s)",
    )  # fmt: skip
    group.add_argument(
        "--timestamp", type=command.number, metavar="SECONDS", help="of the first block (now)"
    )
