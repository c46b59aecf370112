"""Nodes from a genesis: of a genesis file, or of the development chain."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from fastevm.builder.attributes import EXTRA_DATA
from fastevm.builder.block_clock import BlockClock
from fastevm.chain.chain import Chain
from fastevm.chain.config import (
    DEFAULT_BLOCK_TIME_MS,
    DEFAULT_SLICE_INTERVAL_MS,
    ChainConfig,
)
from fastevm.chain.genesis import genesis_block
from fastevm.chain.retention import ChainLimits
from fastevm.chain.system_contracts import SYSTEM_CONTRACTS
from fastevm.node.dev_accounts import ETHER, DevAccount, dev_accounts
from fastevm.node.forked.chain_reset import ChainReset, ChainStart
from fastevm.node.forked.start import forked_chain
from fastevm.node.node import Mining, Node
from fastevm.node.op_stack import op_stack_genesis
from fastevm.storage import Archive, DataDirectory, ScratchBlocks
from fastevm.storage.block_journal import Progress
from fastevm.wire.text.members import read_number

DEV_CHAIN_ID = 31_337
DEV_BALANCE = 10_000 * ETHER
DEV_GAS_LIMIT = 60_000_000
DEV_BASE_FEE = 10**9
DEV_FORKS = (
    "homesteadBlock", "eip150Block", "eip155Block", "eip158Block", "byzantiumBlock",
    "constantinopleBlock", "petersburgBlock", "istanbulBlock", "berlinBlock", "londonBlock",
    "mergeNetsplitBlock", "shanghaiTime", "cancunTime", "pragueTime", "osakaTime",
)  # fmt: skip


def dev_genesis(
    accounts: Sequence[DevAccount], *, chain_id: int = DEV_CHAIN_ID, timestamp: int | None = None
) -> dict[str, Any]:
    """A genesis in geth's format: the newest rules, funded accounts, the system contracts."""
    forks = dict.fromkeys(DEV_FORKS, 0)
    alloc = {"0x" + account.address.hex(): {"balance": hex(DEV_BALANCE)} for account in accounts}
    return {
        "config": {"chainId": chain_id, "terminalTotalDifficulty": 0, **forks},
        "alloc": alloc | SYSTEM_CONTRACTS,
        "difficulty": "0x0",
        "gasLimit": hex(DEV_GAS_LIMIT),
        "baseFeePerGas": hex(DEV_BASE_FEE),
        "timestamp": hex(int(time.time()) if timestamp is None else timestamp),
        "extraData": "0x" + EXTRA_DATA.hex(),
    }


def dev_start(
    accounts: Sequence[DevAccount], *, chain_id: int | None = None, op_fork: str | None = None
) -> ChainStart:
    """The beginning of a development chain now; arguments as of :func:`dev_node`."""
    genesis = dev_genesis(accounts, chain_id=DEV_CHAIN_ID if chain_id is None else chain_id)
    if op_fork is not None:
        genesis = op_stack_genesis(genesis, op_fork)
    config = ChainConfig.from_genesis(genesis)
    return ChainStart(config, *genesis_block(genesis, config))


def dev_node(
    *,
    accounts: int = 10,
    chain_id: int = DEV_CHAIN_ID,
    block_time_ms: int = DEFAULT_BLOCK_TIME_MS,
    slice_interval_ms: int = DEFAULT_SLICE_INTERVAL_MS,
    mining: Mining = Mining.CADENCE,
    timestamp: int | None = None,
    op_fork: str | None = None,
    directory: DataDirectory | None = None,
    **options: Any,
) -> Node:
    """A node on a development chain, which builds blocks by itself.

    ``accounts`` accounts of the well-known test mnemonic hold 10,000 ether each. ``timestamp`` of
    the first block in seconds: now, or that of the chain in ``directory``. ``op_fork``: a chain of
    the OP stack with the rules of that fork (its name in lower case). Further options as of
    :func:`genesis_node`. ValueError for a configuration that no chain can have.
    """
    funded = dev_accounts(accounts)
    stored = None if directory is None else directory.genesis
    if timestamp is None and stored is not None:
        timestamp = read_number(stored.get("timestamp", 0), "timestamp")
    genesis = dev_genesis(funded, chain_id=chain_id, timestamp=timestamp)
    if op_fork is not None:
        genesis = op_stack_genesis(genesis, op_fork)
    options |= {"block_time_ms": block_time_ms, "slice_interval_ms": slice_interval_ms}
    options |= {"mining": mining, "directory": directory, "accounts": funded}
    node = genesis_node(genesis, **options)
    if directory is None and mining is not Mining.NEVER:
        node.resets = ChainReset(
            node,
            lambda fork: forked_chain(fork, funded),
            lambda: dev_start(funded, chain_id=chain_id, op_fork=op_fork),
        )
    return node


def genesis_node(
    genesis: Mapping[str, Any],
    *,
    accounts: Sequence[DevAccount] = (),
    produce_blocks: bool = False,
    mining: Mining | None = None,
    block_time_ms: int = DEFAULT_BLOCK_TIME_MS,
    slice_interval_ms: int = DEFAULT_SLICE_INTERVAL_MS,
    directory: DataDirectory | None = None,
    progress: Progress | None = None,
    limits: ChainLimits | None = None,
    genesis_hash: bytes | None = None,
    fixed_block_time: bool = False,
    **options: Any,
) -> Node:
    """A node on the chain of a genesis file (geth's format); ValueError names a wrong member.

    ``produce_blocks``: as ``mining=Mining.CADENCE``. ``genesis_hash`` (32 bytes): ValueError for
    another genesis. ``fixed_block_time`` as of :class:`ChainConfig`. The chain in ``directory`` is
    restored, with ``progress(blocks, bytes, all_bytes)`` after each record, and kept there.
    StorageError (a ValueError) when the directory holds another chain. Further options as of
    :class:`Node`.
    """
    pace = {"block_time_ms": block_time_ms, "slice_interval_ms": slice_interval_ms}
    config = ChainConfig.from_genesis(genesis, **pace, fixed_block_time=fixed_block_time)
    block, layer = genesis_block(genesis, config, genesis_hash=genesis_hash)
    mining = mining or (Mining.CADENCE if produce_blocks else Mining.NEVER)
    if mining is not Mining.NEVER:
        BlockClock.check(block.header.timestamp)

    def fresh() -> Chain:
        return Chain(config, block, layer, limits=limits)

    if directory is None:
        chain = fresh()
        chain.archive = Archive(ScratchBlocks())
    else:
        directory.claim(genesis, block.hash, config.chain_id)
        chain = directory.restore(fresh, progress)
    return Node(chain, accounts=accounts, mining=mining, directory=directory, **options)
