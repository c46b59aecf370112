"""Parses the options of ``fastevm node`` and starts a server from them."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import fastevm.simulate as simulate
from fastevm import node as nodes
from fastevm.chain import named as chains
from fastevm.chain.storage import StorageError
from fastevm.core.primitives.arguments import count
from fastevm.core.primitives.duration import read_duration
from fastevm.core.primitives.replace import replace
from fastevm.core.primitives.safe_text import safe
from fastevm.errors import ForkError, error_text
from fastevm.rpc.contract_files import ContractFiles, default_directories
from fastevm.rpc.dialect import CANONICAL, DEFAULT_DIALECT, DIALECTS, RECEIPTS, Dialect
from fastevm.rpc.explorer.options import add_explorer, add_explorer_for, watch
from fastevm.rpc.limits import Limits
from fastevm.rpc.log_output import set_up_log
from fastevm.rpc.terminal.options import add_terminal_arguments, terminal_options
from fastevm.rpc.terminal.terminal import Terminal
from fastevm.rpc.transport.access import (
    DEFAULT_ACCESS,
    Access,
    Keys,
    lower,
    parse_namespaces,
    read_secret,
    read_token,
)
from fastevm.rpc.transport.ipc import IpcListener
from fastevm.rpc.transport.server import (
    DEFAULT_HOST,
    DEFAULT_PORT,
    HIGHEST_PORT,
    Listener,
    Server,
    parse_listener,
    serve,
)
from fastevm.rpc.transport.server import run as run_loop

MILLISECONDS = 1_000
MEGABYTE = 1024 * 1024
LARGEST_REQUEST = 256 * MEGABYTE  # largest request in bytes with --no-request-size-limit
REQUEST_COPIES = 4  # most memory of a large request, as a multiple of its size
IPC_NAME = "fastevm.ipc"
ABOUT = "`pending` changes every {} ms. For tools that know anvil or Hardhat: fastevm dev"
NOT_FORKED = {
    "genesis": "the fork uses the upstream's chain",
    "op": "the fork uses the upstream's rules (--hardfork selects others)",
    "base": "the fork uses the upstream's rules (--hardfork selects others)",
    "disable_tx_gas_limit": "the fork uses the upstream's rules",
    "upstream_url": "--follow continues with the upstream's blocks",
}
"""Options that cannot be combined with a fork, and what to do instead."""
FORKED_THREADS = 16  # worker threads of a forked node; they mostly wait for its upstream
PROGRESS_BLOCKS = 1_000  # imported blocks between two progress lines
LONGEST_WITHOUT_UNIT = 60  # largest block time in seconds that is accepted without a unit


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the node's options to a parser."""
    parser.description = (
        "Start a node whose pending state moves with every slice (200 ms). A block for each"
        " transaction, for tools that know anvil or Hardhat: fastevm dev."
    )
    ipc = f"{IPC_NAME}; a bare name is one in --datadir, else in the system's temporary directory"
    add_listeners(parser.add_argument_group("listeners"), ipc)
    add_access(parser.add_argument_group("access"))
    explorer = parser.add_argument_group("explorer")
    add_explorer(explorer)
    add_explorer_for(explorer)
    _add_chain(parser.add_argument_group("chain"))
    add_logs(parser.add_argument_group("logs"))
    add_calls(parser.add_argument_group("calls"))
    nodes.add_chain_arguments(parser)
    parser.add_argument("--threads", type=int, metavar="N", help="worker threads (all cores)")
    add_terminal_arguments(parser, tells=False)
    parser.set_defaults(usage_error=parser.error, ipc_default=IPC_NAME, config_file=None)


def add_listeners(group: argparse._ArgumentGroup, ipc: str) -> None:
    """Add the options for addresses, IPC and dialect. The help of ``--ipc`` shows ``ipc``."""
    group.add_argument("--host", default=DEFAULT_HOST, help="address to listen on (%(default)s)")
    group.add_argument(
        "-p",
        "--port",
        type=port,
        default=DEFAULT_PORT,
        metavar="N",
        help="port (%(default)s; 0: any)",
    )
    group.add_argument(
        "--dialect",
        choices=sorted(DIALECTS),
        default=DEFAULT_DIALECT,
        help="which answers to give where documents disagree (%(default)s)",
    )
    group.add_argument(
        "--receipts",
        choices=RECEIPTS,
        default=CANONICAL,
        help="when eth_getTransactionReceipt returns a receipt: when the transaction is in a block,"
        " or already when it is in a slice, which breaks clients that then read latest"
        " (%(default)s)",
    )
    group.add_argument(
        "--listen",
        action="append",
        type=listener,
        metavar="DIALECT[/RECEIPTS]@HOST:PORT",
        help="one more listener, with its own dialect and receipts; may be repeated",
    )
    group.add_argument(
        "--ipc", "--ipcpath", type=socket_path, nargs="?", const="", metavar="PATH",
        help="a Unix socket to listen on as well, for programs of this user only (" + ipc + ")",
    )  # fmt: skip


def add_access(group: argparse._ArgumentGroup) -> None:
    """Add the options that decide who may use the listeners."""
    group.add_argument(
        "--api",
        type=namespaces,
        metavar="NAMES",
        help="namespaces of methods to serve, as eth,debug,txpool, or * (on loopback: all, on other"
        " addresses: eth,net,web3)",
    )
    group.add_argument(
        "--allow-origin",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="origin of pages that may call, as https://app.example, or * (pages of this machine"
        " may); may be repeated",
    )
    group.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="name under which clients reach the node, or * (localhost, IP addresses and --host are"
        " allowed); may be repeated",
    )
    group.add_argument(
        "--trusted-proxy",
        action="append",
        type=proxy,
        default=[],
        metavar="ADDRESS",
        help="IP address of a reverse proxy whose X-Forwarded-For says whom limits count a request"
        " for; may be repeated",
    )
    group.add_argument(
        "--metrics-listen", type=address, metavar="HOST:PORT",
        help="serve /metrics at this address only",
    )  # fmt: skip
    _add_keys(group)


def _add_keys(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--auth-token",
        type=Path,
        metavar="FILE",
        help="file with a bearer token, required for all namespaces but eth,net,web3",
    )
    group.add_argument(
        "--jwt-secret",
        type=Path,
        metavar="FILE",
        help="file with a JWT secret of 32 bytes in hex: HS256 tokens are accepted, too",
    )


def access_of(arguments: argparse.Namespace) -> Access:
    """Return the access rules of the listeners.

    Raises ValueError or OSError if a key file is invalid.
    """
    token, secret = arguments.auth_token, arguments.jwt_secret
    keys = None
    if token is not None or secret is not None:
        keys = Keys(
            None if token is None else read_token(token),
            None if secret is None else read_secret(secret),
        )
    return Access(
        hosts=lower(arguments.allow_host),
        origins=lower(arguments.allow_origin),
        proxies=frozenset(arguments.trusted_proxy),
        namespaces=arguments.api,
        keys=keys,
        explorer=arguments.explorer,
    )


def proxy(text: str) -> str:
    try:
        return str(ip_address(text))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"invalid address {text!r}: expected an IP address"
        ) from None


def namespaces(text: str) -> frozenset[str]:
    try:
        return parse_namespaces(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def address(text: str) -> Listener:
    if "@" in text or not text.rpartition(":")[2].isdigit():
        raise argparse.ArgumentTypeError(f"invalid address {text!r}: expected HOST:PORT")
    return listener(text)


def _add_chain(group: argparse._ArgumentGroup) -> None:
    _add_genesis(group)
    group.add_argument(
        "--slots-in-an-epoch", type=number, default=0, metavar="BLOCKS",
        help="blocks between latest and safe, and between safe and finalized (%(default)s)",
    )  # fmt: skip
    group.add_argument(
        "--block-time",
        type=block_time,
        metavar="TIME",
        help="time from block to block, such as 200ms or 2s; a number is in seconds (2s). Also"
        " builds blocks on a chain of --genesis. Followers of a chain with blocks of less than a"
        " second need it too",
    )
    group.add_argument(
        "--slice-interval",
        type=milliseconds,
        default=200,
        metavar="TIME",
        help="time from slice to slice, such as 200ms; a number is in milliseconds (%(default)s)",
    )
    group.add_argument(
        "--pending-max-age",
        type=milliseconds,
        metavar="TIME",
        default=int(Limits().pending_age * MILLISECONDS),
        help="age of the newest slice from which on pending means latest and /readyz"
        " fails, such as 5s; a number is in milliseconds; 0: never (%(default)s)",
    )


def _add_genesis(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--chain", metavar="NAME", help=chains.CHAIN_HELP)
    group.add_argument(
        "--genesis",
        type=Path,
        metavar="FILE",
        help="genesis file in geth's format; with --chain only its state and header count",
    )
    group.add_argument(
        "--override-amsterdam",
        type=int,
        metavar="SECONDS",
        help="timestamp at which Amsterdam begins on the chain of --chain or --genesis",
    )
    group.add_argument(
        "--import",
        type=Path,
        metavar="FILE",
        dest="import_file",
        help="file of RLP blocks to add to the genesis block",
    )
    group.add_argument(
        "--chain-id",
        type=chain_id,
        metavar="N",
        help="chain id of the development chain, in decimal or 0x hex (31337)",
    )
    group.add_argument(
        "--accounts",
        type=int,
        default=10,
        metavar="N",
        help="funded accounts of the development chain (%(default)s)",
    )


def _add_request_size(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--no-request-size-limit", action="store_true",
        help=f"take requests of up to {LARGEST_REQUEST // MEGABYTE} MB, not of"
        f" {Limits().body_size // MEGABYTE} MB at most",
    )  # fmt: skip


def add_logs(group: argparse._ArgumentGroup) -> None:
    """Add the limits of log searches."""
    limits = Limits()
    group.add_argument(
        "--max-log-blocks",
        type=count,
        default=limits.log_blocks,
        metavar="N",
        help="blocks that one eth_getLogs may search (%(default)s)",
    )
    group.add_argument(
        "--max-logs",
        type=count,
        default=limits.logs,
        metavar="N",
        help="logs in its answer, beyond which a smaller range is proposed (%(default)s)",
    )
    group.add_argument(
        "--log-index-size",
        type=count,
        default=limits.log_index_size // MEGABYTE,
        metavar="MB",
        help="megabytes of logs that are kept in memory to be searched (%(default)s)",
    )


def add_calls(group: argparse._ArgumentGroup) -> None:
    """Add the limits of calls and requests."""
    _add_request_size(group)
    group.add_argument(
        "--rpc-gascap", type=count, default=Limits().call_gas, metavar="GAS",
        help="most gas of an eth_call or a simulated call; more is cut (%(default)s)",
    )  # fmt: skip


def limits_of(arguments: argparse.Namespace) -> Limits:
    """Return the limits that the options set."""
    body_size, traffic_size = Limits().body_size, Limits().traffic_size
    if arguments.no_request_size_limit:
        body_size, traffic_size = LARGEST_REQUEST, REQUEST_COPIES * LARGEST_REQUEST
    return Limits(
        pending_age=arguments.pending_max_age / MILLISECONDS,
        call_gas=arguments.rpc_gascap,
        log_blocks=arguments.max_log_blocks,
        logs=arguments.max_logs,
        log_index_size=arguments.log_index_size * MEGABYTE,
        body_size=body_size,
        traffic_size=traffic_size,
    )


def number(text: str) -> int:
    """Parse a number of at least zero, in decimal or as 0x and hex."""
    try:
        found = int(text, 16 if text[:2].lower() == "0x" else 10)
    except ValueError:
        found = -1
    if found < 0:
        raise argparse.ArgumentTypeError(f"invalid value {text!r}: expected a number >= 0")
    return found


def socket_path(text: str) -> str:
    """Return the path of a Unix socket as text.

    A Path would turn ``./name`` into ``name``, which has a different meaning (see `ipc_path`).
    """
    return text


def port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > HIGHEST_PORT:
        raise argparse.ArgumentTypeError(f"invalid port {text!r}: expected 0 to {HIGHEST_PORT}")
    return int(text)


def chain_id(text: str) -> int:
    try:
        return int(text, 16 if text[:2].lower() == "0x" else 10)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"invalid chain id {text!r}: expected one such as 31337 or 0x7a69"
        ) from None


def milliseconds(text: str) -> int:
    """Parse a duration; a number without a unit is in milliseconds."""
    return _milliseconds(text, "ms")


def block_time(text: str) -> int:
    """Parse a block time as milliseconds; a number without a unit is in seconds.

    Refuses large numbers without a unit, which are probably milliseconds.
    """
    if text.isascii() and text.isdigit() and int(text) > LONGEST_WITHOUT_UNIT:
        raise argparse.ArgumentTypeError(f"{text}: add a unit, as in {text}ms or {text}s")
    return _milliseconds(text, "s")


def _milliseconds(text: str, unit: str) -> int:
    try:
        seconds = read_duration(text, unit=unit)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    found = round(seconds * MILLISECONDS)
    if found == 0 and seconds:
        raise argparse.ArgumentTypeError(f"{text}: expected at least 1ms")
    return found


def listener(text: str) -> Listener:
    try:
        return parse_listener(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def refuse_together(arguments: argparse.Namespace) -> None:
    """Exit with a usage error if options exclude each other or an option lacks another."""
    given = bool(arguments.genesis or arguments.chain)
    hardfork = arguments.hardfork is not None
    on_demand = arguments.no_mining or arguments.instant
    for is_wrong, message in (
        (arguments.import_file and not given, "--import needs --genesis or --chain"),
        (
            arguments.override_amsterdam is not None and not given,
            "--override-amsterdam needs --genesis or --chain",
        ),
        (hardfork and given, "--hardfork: the chain of --genesis or --chain has its own forks"),
        (hardfork and arguments.op, "--hardfork does not go with --op: use --op-fork"),
        (arguments.op and given, "--op starts its own chain: not with --genesis or --chain"),
        (arguments.op_fork is not None and not arguments.op, "--op-fork needs --op"),
        (hardfork and arguments.base, "--hardfork does not go with --base: use --base-fork"),
        (arguments.base and given, "--base starts its own chain: not with --genesis or --chain"),
        (arguments.base_fork is not None and not arguments.base, "--base-fork needs --base"),
        (arguments.base and arguments.op, "--base does not go with --op"),
        (
            arguments.chain_id is not None and given,
            "--chain-id: the chain of --genesis or --chain has its own id",
        ),
        (
            arguments.genesis_time is not None and given,
            "--genesis-time: the chain of --genesis or --chain has its own",
        ),
        (
            arguments.block_time is not None and on_demand,
            "--block-time does not go with --no-mining or --instant, which have no schedule",
        ),
        *contradictions_of_directory(arguments),
        (
            arguments.follow and arguments.datadir is not None,
            "--datadir cannot store the blocks of a fork with --follow",
        ),
        (arguments.quiet and arguments.verbose, "-q and -v exclude each other"),
    ):
        if is_wrong:
            arguments.usage_error(message)
    for name, instead in NOT_FORKED.items() if arguments.fork_url else ():
        if getattr(arguments, name):
            arguments.usage_error(f"not with --fork-url: --{name.replace('_', '-')}: {instead}")


def contradictions_of_directory(arguments: argparse.Namespace) -> list[tuple[bool, str]]:
    """Return (is present, message) for each possible contradiction of data directory options."""
    return [
        (arguments.full_replay and arguments.datadir is None, "--full-replay needs --datadir"),
        (
            arguments.datadir is not None and arguments.cache_path is not None,
            "--cache-path: a fork with --datadir caches fetched state there",
        ),
    ]


def run(arguments: argparse.Namespace) -> int:
    """Serve the node that the options describe until SIGINT or SIGTERM. Returns 1 on bad input.

    If the upstream of a follower is on another chain, either returns 1 or starts over with that
    chain, depending on ``--foreign-chain``.
    """
    set_up_log()
    if arguments.explorer_for is not None:
        return watch(arguments)
    left: bytes | None = None
    try:
        access = access_of(arguments)
        while True:
            node = node_of(arguments)
            node.slots_in_an_epoch = arguments.slots_in_an_epoch
            genesis = node.chain.genesis.hash
            if genesis == left:
                raise ValueError(
                    "the upstream node is on another chain than these options describe"
                )
            foreign = serve_node(node, arguments, access)
            if foreign is None:
                return 0
            if arguments.foreign_chain == nodes.STOP:
                raise ValueError(f"{foreign} (--foreign-chain {nodes.START_OVER} would follow it)")
            nodes.abandon_chain(arguments)
            left = genesis
    except (ValueError, OSError, ForkError) as error:
        print(f"fastevm node: {safe(error_text(error))}", file=sys.stderr)
        return 1


def serve_node(
    node: Any,
    arguments: argparse.Namespace,
    access: Access = DEFAULT_ACCESS,
    *,
    client: str | None = None,
    development: bool = False,
    about: Sequence[str] | None = None,
) -> str | None:
    """Serve until SIGINT or SIGTERM. Returns None, or why the node ended early.

    The node ends early if the upstream of a follower is on another chain. ``client`` is the node's
    name for web3_clientVersion. ``development`` gives every listener the development dialect.
    ``about`` has lines for the banner, which by default says how often ``pending`` changes.
    """
    foreign: list[str] = []

    def leave(text: str) -> None:
        foreign.append(text)
        # the signal ends the node in the usual order, which finishes open requests
        os.kill(os.getpid(), signal.SIGTERM)

    node.on_foreign_chain(leave)
    server = server_of(node, arguments, access, client)
    usual = (ABOUT.format(node.chain.config.slice_interval_ms),)
    server.about = usual if about is None else about
    if development:

        def prepared(item: Any) -> Any:
            raising = arguments.throw_on_transaction_failures
            spoken = item.dialect.of_development(failed_send_is_error=raising)
            return replace(item, dialect=spoken)

        server.listeners = tuple(map(prepared, server.listeners))
        server.ipc = None if server.ipc is None else prepared(server.ipc)
    run_loop(serve(server, quiet=arguments.quiet))
    return foreign[0] if foreign else None


def server_of(
    node: Any, arguments: argparse.Namespace, access: Access, client: str | None
) -> Server:
    """Return a server with the listeners that the options describe."""
    dialect = dialect_of(arguments)
    listeners = [Listener(dialect, arguments.host, arguments.port), *(arguments.listen or ())]
    listeners = [replace(item, access=access) for item in listeners]
    metrics, shown = arguments.metrics_listen, terminal_options(arguments)
    server = Server(
        node,
        simulate,
        listeners,
        limits=limits_of(arguments),
        threads=threads_of(node, arguments),
        metrics_listener=None if metrics is None else replace(metrics, access=access),
        client=client,
        terminal=None if shown is None else Terminal(shown),
        contracts=ContractFiles([*arguments.abi, *default_directories(arguments.config_file)]),
    )
    if arguments.ipc is not None:
        server.ipc = IpcListener(dialect, ipc_path(arguments), access)
    return server


def dialect_of(arguments: argparse.Namespace) -> Dialect:
    """Return the dialect of the first listener, with the receipts that ``--receipts`` selects."""
    return DIALECTS[arguments.dialect].with_receipts(arguments.receipts)


def ipc_path(arguments: argparse.Namespace) -> Path:
    """Return the path of the Unix socket. A bare name is in the data or temporary directory."""
    given: str = arguments.ipc or arguments.ipc_default
    if arguments.ipc_default == IPC_NAME and Path(given).name == given:
        from tempfile import gettempdir  # tempfile loads many modules

        return Path(arguments.datadir or gettempdir()) / given
    return Path(given)


def threads_of(node: Any, arguments: argparse.Namespace) -> int | None:
    """Return the number of worker threads; None means one per core."""
    if node.history is None or arguments.threads is not None:
        stated: int | None = arguments.threads
        return stated
    return max(FORKED_THREADS, os.cpu_count() or 1)


def node_of(arguments: argparse.Namespace) -> Any:
    """Return a node on the chain that the options describe.

    Raises ValueError or OSError for unusable files, ForkError for an unusable upstream.
    """
    refuse_together(arguments)
    fork = nodes.fork_options(arguments)
    if fork is not None:
        return forked(arguments, fork)
    chosen = chains.chosen_chain(
        arguments.chain, arguments.genesis, amsterdam_time=arguments.override_amsterdam
    )
    times: dict[str, Any] = {
        "slice_interval_ms": arguments.slice_interval,
        "parameters": {"tx_gas_cap": 0} if arguments.disable_tx_gas_limit else {},
    }
    block_time = arguments.block_time
    if block_time is None and chosen is not None:
        block_time = chosen.block_time_ms
    if block_time is not None:
        times["block_time_ms"] = block_time
        times["slice_interval_ms"] = min(arguments.slice_interval, block_time)
    cadence = chosen is None or arguments.block_time is not None
    mining = nodes.Mining.CADENCE if cadence else nodes.Mining.NEVER
    options = nodes.node_options(arguments, mining) | times
    options["progress"] = progress("restored", arguments.quiet)
    options["directory"] = directory = nodes.open_directory(arguments)
    try:
        node = chain_of(arguments, options, chosen)
        if arguments.import_file is not None:
            report = progress("imported", arguments.quiet)
            count = node.chain.import_rlp(arguments.import_file.read_bytes(), report)
            if not arguments.quiet:
                print(f"imported {count} blocks, head {node.chain.head.number}")
        nodes.follow_upstream(node, arguments)
        nodes.configure_feed(node, arguments)
    except BaseException:
        if directory is not None:
            directory.close()
        raise
    return node


def of_chain(fork: Any, name: str | None) -> Any:
    """Return the fork options with the upstream restricted to the chain called ``name``, if given.

    Raises ValueError if the name is unknown or its chain id differs from ``--fork-chain-id``.
    """
    if name is None:
        return fork
    chain = chains.find(name)
    if fork.chain_id not in (None, chain.chain_id):
        raise ValueError(
            f"--chain {name} has the chain id {chain.chain_id}, --fork-chain-id is {fork.chain_id}"
        )
    return replace(fork, chain_id=chain.chain_id)


def forked(arguments: argparse.Namespace, fork: Any) -> Any:
    """Return a node on a fork of another node's chain."""
    options = nodes.node_options(arguments, nodes.Mining.CADENCE)
    fork = of_chain(fork, arguments.chain)
    directory = nodes.open_directory(arguments)
    try:
        node = nodes.forked_node(
            fork,
            accounts=0 if arguments.follow else arguments.accounts,
            chain_id=arguments.chain_id,
            block_time_ms=arguments.block_time,
            slice_interval_ms=arguments.slice_interval,
            timestamp=arguments.genesis_time,
            directory=directory,
            progress=progress("restored", arguments.quiet),
            **options,
        )
        nodes.follow_upstream(node, arguments)
        nodes.configure_feed(node, arguments)
    except BaseException:
        if directory is not None:
            directory.close()
        raise
    return node


def chain_of(
    arguments: argparse.Namespace, options: dict[str, Any], chosen: chains.ChosenChain | None
) -> Any:
    """Return a node on the chosen chain, or on the development chain if ``chosen`` is None."""
    if chosen is not None:
        try:
            return nodes.genesis_node(
                chosen.genesis,
                genesis_hash=chosen.genesis_hash,
                fixed_block_time=chosen.fixed_block_time and arguments.block_time is None,
                **options,
            )
        except StorageError:
            raise
        except ValueError as error:
            if arguments.genesis is None:
                raise
            raise ValueError(f"{arguments.genesis}: {error}") from None
    if arguments.chain_id is not None:
        options["chain_id"] = arguments.chain_id
    return nodes.dev_node(
        accounts=arguments.accounts,
        hardfork=arguments.hardfork,
        op_fork=nodes.op_fork_of(arguments),
        timestamp=nodes.genesis_time(arguments, options["directory"]),
        **options,
    )


def progress(verb: str, quiet: bool) -> Any:
    """Return a function that prints every thousandth block and the bytes read, unless ``quiet``."""

    def report(blocks: int, size: int, total: int | None = None) -> None:
        if blocks and blocks % PROGRESS_BLOCKS == 0 and not quiet:
            of = "" if total is None else f" of {total}"
            print(f"{verb} {blocks} blocks ({size}{of} bytes)", flush=True)

    return report
