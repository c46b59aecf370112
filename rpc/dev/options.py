"""The options of ``fastevm dev``, with the names, units and defaults of anvil's options."""

from __future__ import annotations

import argparse
import re
from decimal import Context, Decimal, Inexact, InvalidOperation, Overflow
from pathlib import Path
from typing import Any, Final

import fastevm
from fastevm import node as nodes
from fastevm.core.primitives.arguments import count
from fastevm.core.primitives.duration import read_duration
from fastevm.core.primitives.hex import checksum_address
from fastevm.node.production import MAX_INTERVAL, MIN_INTERVAL
from fastevm.rpc import command
from fastevm.rpc.dev.settings import add_config_arguments
from fastevm.rpc.dialect import DEVELOPMENT_DIALECT
from fastevm.rpc.explorer.options import add_explorer
from fastevm.rpc.terminal.options import add_terminal_arguments

DEFAULT_GAS_LIMIT: Final = 30_000_000
DEFAULT_BALANCE: Final = 10_000  # ether
DEFAULT_EPOCH: Final = 32  # blocks
# blocks of one eth_getLogs; scanning them takes 0.1 s if they are empty
MAX_LOG_BLOCKS: Final = 1_000_000
ACCEPTED_SWITCHES: Final = (
    ("--steps-tracing", "--tracing"),
    ("--disable-min-priority-fee", "--no-priority-fee"),
)
ACCEPTED_VALUES: Final = (
    "--prune-history", "--max-persisted-states", "--transaction-block-keeper", "--gas-price",
)  # fmt: skip
REFUSED: Final = {
    "--celo": "the chain always has Ethereum's rules",
    "--disable-pool-balance-checks": "a transaction that cannot be paid would wait for ever;"
    " anvil_setBalance gives its sender ether",
    "--max-transactions": "only the gas limit limits a block (--gas-limit)",
    "--md": "the terminal writes text or JSON (--log-format)",
    "--memory-limit": "the memory of a call is bounded by its gas (--rpc-gascap)",
    "--profile": "fastevm.toml has one table; --config-file reads another file",
    "--optimism": "fastevm node --op starts a chain of the OP stack",
    "--no-cors": "pages of this machine may call; --allow-origin names others",
}
"""Options of anvil that are not supported, and why or what to use instead."""
NETWORKS: Final = {
    "optimism": "fastevm node --op starts a chain of the OP stack",
    "base": "fastevm dev --hardfork denim starts a chain of Base",
}
"""Networks that another option or command starts, with a hint."""
IPC_PATH: Final = "/tmp/anvil.ipc"
ADDRESS: Final = re.compile("0x[0-9a-fA-F]{40}")
EXACT: Final = Context(prec=100, traps=[Inexact, InvalidOperation, Overflow])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of a development node to a parser."""
    parser.description = (
        "Start a development node: a block for each transaction at once, as anvil and Hardhat make"
        " them. A node whose `pending` changes every 200 ms: fastevm node."
    )
    parser.add_argument(
        "-V", "--version", action="version", version=f"fastevm {fastevm.__version__}"
    )
    add_config_arguments(parser.add_argument_group("configuration"))
    command.add_listeners(parser.add_argument_group("listeners"), IPC_PATH)
    command.add_access(parser.add_argument_group("access"))
    add_explorer(parser.add_argument_group("explorer"))
    _add_accounts(parser.add_argument_group("accounts"))
    _add_chain(parser.add_argument_group("chain"))
    _add_mining(parser.add_argument_group("mining"))
    _add_state(parser.add_argument_group("state"))
    command.add_logs(parser.add_argument_group("logs"))
    command.add_calls(parser.add_argument_group("calls"))
    nodes.add_fork_arguments(parser)
    _add_accepted(parser.add_argument_group("accepted, without effect"))
    parser.add_argument(
        "-j", "--threads", "--jobs", type=int, metavar="N", help="worker threads (all cores)"
    )
    add_terminal_arguments(parser, tells=True)
    parser.set_defaults(
        usage_error=parser.error,
        dialect=DEVELOPMENT_DIALECT,
        pending_max_age=0,
        max_log_blocks=MAX_LOG_BLOCKS,
        ipc_default=IPC_PATH,
    )


def _add_accounts(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "-a", "--accounts", type=int, default=10, metavar="N", help="funded accounts (%(default)s)"
    )
    group.add_argument(
        "--balance", type=count, default=DEFAULT_BALANCE, metavar="ETHER",
        help="balance of each funded account (%(default)s)",
    )  # fmt: skip
    group.add_argument(
        "--fund-accounts", type=funded, nargs="+", action="extend", default=[],
        metavar="ADDRESS:ETHER", help="also fund these accounts, whose keys the node does not have",
    )  # fmt: skip

    words = group.add_mutually_exclusive_group()
    words.add_argument(
        "-m", "--mnemonic", default=nodes.TEST_MNEMONIC, metavar="WORDS",
        help="mnemonic of the funded accounts (test test ... junk)",
    )  # fmt: skip
    words.add_argument(
        "--mnemonic-random", type=int, nargs="?", const=12, metavar="WORDS",
        help="use a random mnemonic of this many words (12)",
    )  # fmt: skip
    words.add_argument(
        "--mnemonic-seed-unsafe", type=command.number, metavar="N",
        help="use the mnemonic that anvil makes from this number; everybody can make it",
    )  # fmt: skip
    group.add_argument(
        "--derivation-path", default=nodes.DERIVATION_PATH, metavar="PATH",
        help="derivation path; the account's index is appended (%(default)s)",
    )  # fmt: skip
    group.add_argument(
        "--auto-impersonate", "--auto-unlock", action="store_true",
        help="send transactions from every account, without its key",
    )  # fmt: skip


def _add_chain(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--chain-id", type=command.chain_id, metavar="N",
        help="chain id in decimal or 0x hex (31337, or the fork's)",
    )  # fmt: skip
    group.add_argument(
        "--gas-limit", type=count, metavar="GAS",
        help=f"block gas limit ({DEFAULT_GAS_LIMIT}; Amsterdam: {nodes.STATE_GAS_LIMIT})",
    )  # fmt: skip
    group.add_argument(
        "--enable-tx-gas-limit", "--tx-gas-limit", action="store_true",
        help="refuse transactions of more gas than the rules allow each (EIP-7825: 16777216)",
    )  # fmt: skip
    _add_code_size(group)
    group.add_argument(
        "--block-base-fee-per-gas", "--base-fee", type=command.number, default=10**9, metavar="WEI",
        help="base fee of the first block (%(default)s)",
    )  # fmt: skip
    group.add_argument(
        "--timestamp",
        type=command.number,
        metavar="SECONDS",
        help="timestamp of the first block (now)",
    )
    group.add_argument(
        "--number",
        type=command.number,
        default=0,
        metavar="N",
        help="number of the first block (0)",
    )
    group.add_argument(
        "--disable-block-gas-limit", action="store_true", help="do not limit the gas of a block"
    )
    group.add_argument(
        "--disable-default-create2-deployer", "--no-create2", action="store_true",
        help="leave out the deterministic deployment proxy",
    )  # fmt: skip
    group.add_argument(
        "--trusted-setup", type=Path, metavar="FILE",
        help="KZG setup for blob transactions (FASTEVM_TRUSTED_SETUP, else eth-account's)",
    )  # fmt: skip
    group.add_argument(
        "--init", type=Path, metavar="FILE",
        help="genesis file in geth's format, which overrides other options; forks that"
        " it does not name are there from the first block on",
    )  # fmt: skip


def _add_code_size(group: argparse._ArgumentGroup) -> None:
    size = group.add_mutually_exclusive_group()
    size.add_argument(
        "--code-size-limit", type=count, metavar="BYTES",
        help="code size limit; init code may be twice as long (EIP-170, EIP-3860: 24576)",
    )  # fmt: skip
    size.add_argument(
        "--disable-code-size-limit",
        action="store_true",
        help="do not limit the code size of contracts",
    )


def _add_mining(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "-b", "--block-time", type=seconds, metavar="TIME",
        help="make a block at this interval, such as 200ms or 2s, and not one for each transaction;"
        " a number is in seconds",
    )  # fmt: skip
    group.add_argument(
        "--no-mining", "--no-mine", action="store_true", help="make blocks on demand (evm_mine)"
    )
    group.add_argument(
        "--mixed-mining", action="store_true",
        help="with --block-time: a block for each transaction as well",
    )  # fmt: skip
    group.add_argument(
        "--slots-in-an-epoch", type=command.number, default=DEFAULT_EPOCH, metavar="BLOCKS",
        help="blocks between latest and safe, and between safe and finalized (%(default)s)",
    )  # fmt: skip
    group.add_argument(
        "--increasing-timestamps",
        action="store_true",
        help="give every block a later timestamp than its parent, as Hardhat's network does",
    )
    group.add_argument(
        "--throw-on-transaction-failures", action="store_true",
        help="answer a send with an error if its transaction fails in its block, as Hardhat's"
        " network does",
    )  # fmt: skip
    group.add_argument(
        "--order", choices=("fees", "fifo"), default="fees",
        help="order of transactions in a block: by tip or by arrival (%(default)s)",
    )  # fmt: skip


def _add_state(group: argparse._ArgumentGroup) -> None:
    nodes.add_directory_arguments(group)
    group.add_argument(
        "--state", type=Path, metavar="FILE",
        help="load the chain from this file if it exists, and save it there at the end",
    )  # fmt: skip
    group.add_argument(
        "--load-state", type=Path, metavar="FILE", help="load the chain from this file"
    )
    group.add_argument(
        "--dump-state", type=Path, metavar="FILE",
        help="save the chain at the end; in a directory as state.json",
    )  # fmt: skip
    group.add_argument(
        "-s", "--state-interval", type=seconds, metavar="TIME",
        help="also save the chain at this interval; a number is in seconds",
    )  # fmt: skip
    group.add_argument(
        "--preserve-historical-states", action="store_true",
        help="also save the states of up to 1000 older blocks, for reads and traces",
    )  # fmt: skip
    group.add_argument(
        "--config-out", type=Path, metavar="FILE",
        help="write accounts, keys and constants of the chain as JSON",
    )  # fmt: skip


def _add_accepted(group: argparse._ArgumentGroup) -> None:
    """Accept anvil's options that are the default here or have no effect."""
    for names in ACCEPTED_SWITCHES:
        group.add_argument(*names, action="store_true", help=argparse.SUPPRESS)
    for name in ACCEPTED_VALUES:
        group.add_argument(name, nargs="?", help=argparse.SUPPRESS)
    group.add_argument("-n", "--network", type=_network, help=argparse.SUPPRESS)
    for name, why in REFUSED.items():
        group.add_argument(name, nargs="?", action=Refusal, why=why, help=argparse.SUPPRESS)


def _network(name: str) -> str:
    """Accept ``ethereum``, the only network that ``fastevm dev`` supports."""
    if name == "ethereum":
        return name
    raise argparse.ArgumentTypeError(
        NETWORKS.get(name, f"{name!r} is not supported: only ethereum")
    )


class Refusal(argparse.Action):
    """An option of anvil that is not supported. Its use prints the reason."""

    def __init__(self, *words: Any, why: str, **members: Any) -> None:
        super().__init__(*words, **members)
        self.why = why

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        """Exit with a usage error that says why the option is not supported."""
        parser.error(f"{self.option_strings[0]} is not supported: {self.why}")


def funded(text: str) -> tuple[bytes, int]:
    """Parse ``ADDRESS:ETHER`` as address (20 bytes) and wei. The ether may have decimals."""
    address, _, ether = text.partition(":")
    try:
        wei = EXACT.multiply(Decimal(ether), Decimal(nodes.ETHER))
        if not wei.is_finite() or wei < 0 or wei != wei.to_integral_value() or wei >= 2**256:
            raise ValueError
        return _address(address), int(wei)
    except (ValueError, ArithmeticError):
        raise argparse.ArgumentTypeError(
            f"invalid account {text!r}: expected an address, a colon and ether, as 0x12...ef:1.5"
        ) from None


def _address(text: str) -> bytes:
    """Parse an address. Raises ValueError, also for a wrong checksum (EIP-55)."""
    if ADDRESS.fullmatch(text) is None:
        raise ValueError
    address = bytes.fromhex(text[2:])
    if text[2:] not in (text[2:].lower(), text[2:].upper()) and checksum_address(address) != text:
        raise ValueError
    return address


def seconds(text: str) -> float:
    """Parse a duration as seconds; a number without a unit is in seconds."""
    try:
        found = read_duration(text, unit="s")
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if not MIN_INTERVAL <= found <= MAX_INTERVAL:
        raise argparse.ArgumentTypeError(
            f"invalid duration {text!r}: expected at least {MIN_INTERVAL}s"
        )
    return found
