"""``fastevm dev``: starts a node from the options."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from fastevm import node as nodes
from fastevm.chain import named as chains
from fastevm.core.primitives.hex import checksum_address, hex_bytes
from fastevm.core.primitives.safe_text import safe
from fastevm.errors import ForkError, error_text
from fastevm.rpc.command import access_of, contradictions_of_directory, progress, serve_node
from fastevm.rpc.dev.options import DEFAULT_GAS_LIMIT, add_arguments
from fastevm.rpc.dev.settings import configured
from fastevm.rpc.dev.state_file import StateFile
from fastevm.rpc.log_output import set_up_log
from fastevm.rpc.transport.server import client_version

NO_GAS_LIMIT = 2**62
# leaves room for contracts above the code size limit of EIP-170
MAX_TRANSACTION_BYTES = 2 * 1024 * 1024
COMPATIBLE = "anvil/v1.7.1"
"""Prefix of web3_clientVersion: development tools choose their methods by this name."""

__all__ = ["add_arguments", "configured", "run"]


def run(arguments: argparse.Namespace) -> int:
    """Serve the development node until SIGINT or SIGTERM. Returns 1 on bad input."""
    set_up_log()
    try:
        access = access_of(arguments)
        node = node_of(arguments)
        client = f"{COMPATIBLE} ({client_version()})"
        with StateFile(node, arguments):
            banner = about(arguments)
            serve_node(node, arguments, access, client=client, development=True, about=banner)
    except (ValueError, OSError, ForkError) as error:
        print(f"fastevm dev: {safe(error_text(error))}", file=sys.stderr)
        return 1
    return 0


def about(arguments: argparse.Namespace) -> list[str]:
    """Return the banner's first lines, which show when blocks are built, and the wallet."""
    blocks = "A block for each transaction."
    if arguments.no_mining:
        blocks = "Blocks on demand (evm_mine)."
    elif arguments.block_time is not None:
        more = " and for each transaction" if arguments.mixed_mining else ""
        blocks = f"A block every {arguments.block_time:g} s{more}."
    file = arguments.config_file
    return [
        f"{blocks} A node whose `pending` changes every 200 ms: fastevm node",
        *([] if file is None else [f"Options of {safe(file)} are in use."]),
        "",
        f"Mnemonic:        {arguments.mnemonic}",
        f"Derivation path: {arguments.derivation_path}",
    ]


def node_of(arguments: argparse.Namespace) -> Any:
    """Return the node that the options describe.

    Raises ValueError if the options fit no chain, OSError for files and ForkError for the upstream.
    """
    refuse_together(arguments)
    demand = nodes.Mining.MANUAL if arguments.no_mining else nodes.Mining.INSTANT
    options = {
        "mining": demand,
        "accounts": arguments.accounts,
        "mnemonic": arguments.mnemonic,
        "derivation_path": arguments.derivation_path,
        "fee_cap": 0,
        "allows_unprotected": True,
        "pool_limits": nodes.PoolLimits(
            by_arrival=arguments.order == "fifo", cap_alone_replaces=True
        ),
        "trusted_setup": nodes.find_trusted_setup(arguments.trusted_setup),
    }
    options["progress"] = progress("restored", arguments.quiet)
    options["limits"] = nodes.ChainLimits(states=nodes.default_states(arguments))
    options["directory"] = directory = nodes.open_directory(arguments)
    is_new = directory is None or directory.chain_id is None
    try:
        node = forked(arguments, options) if arguments.fork_url else unforked(arguments, options)
    except BaseException:
        if directory is not None:
            directory.close()
        raise
    node.submission.min_tip = 0
    node.submission.refuses_low_fees = True
    node.slots_in_an_epoch = arguments.slots_in_an_epoch
    if arguments.code_size_limit or arguments.disable_code_size_limit:
        node.submission.max_bytes = MAX_TRANSACTION_BYTES
    if arguments.auto_impersonate:
        node.development.impersonation.everyone = True
    if arguments.block_time is not None:
        node.development.miner.set_interval(arguments.block_time, automine=arguments.mixed_mining)
    if is_new and arguments.fund_accounts:
        balances = {
            hex_bytes(address): {"balance": hex(wei)} for address, wei in arguments.fund_accounts
        }
        node.development.amend(balances)
    if arguments.config_out is not None:
        arguments.config_out.write_text(json.dumps(described(node, arguments), indent=2))
    return node


def refuse_together(arguments: argparse.Namespace) -> None:
    """Exit with a usage error if options exclude each other or an option lacks another.

    Replaces the mnemonic if ``--mnemonic-random`` is given.
    """
    for is_wrong, message in (
        (
            arguments.mixed_mining and arguments.block_time is None,
            "--mixed-mining needs --block-time",
        ),
        (
            arguments.no_mining and arguments.block_time is not None,
            "--no-mining and --block-time exclude each other",
        ),
        (
            arguments.disable_block_gas_limit and arguments.gas_limit is not None,
            "--gas-limit and --disable-block-gas-limit exclude each other",
        ),
        (arguments.quiet and arguments.verbose, "-q and -v exclude each other"),
        (
            arguments.datadir is not None and any((arguments.state, arguments.load_state)),
            "--datadir stores the chain itself: not with --state or --load-state",
        ),
        *contradictions_of_directory(arguments),
    ):
        if is_wrong:
            arguments.usage_error(message)
    try:
        if arguments.mnemonic_random is not None:
            arguments.mnemonic = nodes.random_mnemonic(arguments.mnemonic_random)
        elif arguments.mnemonic_seed_unsafe is not None:
            arguments.mnemonic = nodes.seeded_mnemonic(arguments.mnemonic_seed_unsafe)
        elif arguments.mnemonic != nodes.TEST_MNEMONIC:
            nodes.check_mnemonic(arguments.mnemonic)
    except ValueError as error:
        arguments.usage_error(str(error))


def unforked(arguments: argparse.Namespace, options: dict[str, Any]) -> Any:
    """Return a node on its own chain. Its clock continues from the time of the first block."""
    nodes.fork_options(arguments)  # refuses options that require a fork
    node = dev_node(
        arguments.init,
        balance=arguments.balance * nodes.ETHER,
        chain_id=arguments.chain_id,
        gas_limit=gas_limit_of(arguments),
        base_fee=arguments.block_base_fee_per_gas,
        timestamp=arguments.timestamp,
        number=arguments.number,
        hardfork=arguments.hardfork,
        create2_proxy=not arguments.disable_default_create2_deployer,
        parameters=changed_rules(arguments),
        shares_seconds=not arguments.increasing_timestamps,
        **options,
    )
    if node.storage.development() is None:
        node.producer.clock.set_now(node.chain.head.header.timestamp)
        node.development.keep()
    return node


def gas_limit_of(arguments: argparse.Namespace) -> int:
    """Return the gas limit of a block. Raises ValueError for an unknown fork."""
    if arguments.disable_block_gas_limit:
        return NO_GAS_LIMIT
    if arguments.gas_limit is not None:
        return int(arguments.gas_limit)
    return nodes.usual_gas_limit(arguments.hardfork, DEFAULT_GAS_LIMIT)


def dev_node(init: Path | None, **options: Any) -> Any:
    """Return a node on a development chain. Errors in a genesis file contain its name."""
    if init is None:
        return nodes.dev_node(**options)
    genesis = chains.read_genesis(init)
    try:
        return nodes.dev_node(genesis_file=genesis, **options)
    except ValueError as error:
        raise ValueError(f"{init}: {error}") from None


def forked(arguments: argparse.Namespace, options: dict[str, Any]) -> Any:
    """Return a node on a fork of another node's chain."""
    if arguments.follow:
        raise ValueError("a development node builds blocks itself; fastevm node has --follow")
    node: Any = nodes.forked_node(
        nodes.fork_options(arguments),  # type: ignore[arg-type]
        balance=arguments.balance * nodes.ETHER,
        chain_id=arguments.chain_id,
        timestamp=arguments.timestamp,
        parameters=changed_rules(arguments),
        without_work=True,
        shares_seconds=not arguments.increasing_timestamps,
        **options,
    )
    return node


def changed_rules(arguments: argparse.Namespace) -> dict[str, int]:
    """Return the protocol parameters that the options change, by name."""
    changed = {} if arguments.enable_tx_gas_limit else {"tx_gas_cap": 0}
    if arguments.disable_code_size_limit:
        changed |= {"max_code_size": 0, "max_initcode_size": 0}
    elif arguments.code_size_limit is not None:
        limit = arguments.code_size_limit
        changed |= {"max_code_size": limit, "max_initcode_size": 2 * limit}
    return changed


def described(node: Any, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the content of the ``--config-out`` file, with anvil's names."""
    first = node.chain.head.header
    return {
        "available_accounts": [checksum_address(account.address) for account in node.accounts],
        "private_keys": [hex_bytes(account.private_key) for account in node.accounts],
        "wallet": {
            "derivation_path": arguments.derivation_path,
            "mnemonic": arguments.mnemonic,
        },
        "base_fee": str(first.base_fee_per_gas or 0),
        "gas_limit": str(first.gas_limit),
        "genesis_timestamp": str(first.timestamp),
        "chain_id": node.config.chain_id,
    }
