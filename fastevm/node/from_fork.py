"""Creates a node whose chain continues from a block of another node's chain."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import fastevm.fork as fork
from fastevm.chain.chain import Chain
from fastevm.chain.retention import ChainLimits
from fastevm.chain.storage import Archive, DataDirectory, ScratchBlocks, StorageError
from fastevm.chain.storage.block_journal import Progress
from fastevm.chain.storage.genesis_file import Pace
from fastevm.core.execution.arbitrum.header import is_arbitrum
from fastevm.core.primitives.replace import replace
from fastevm.core.spec.parameters import Value
from fastevm.node.dev_accounts import (
    DERIVATION_PATH,
    DEV_BALANCE,
    TEST_MNEMONIC,
    balances_of,
    dev_accounts,
)
from fastevm.node.dev_chain import DEV_CHAIN_ID, NO_WORK, DevChain
from fastevm.node.node import Mining, Node
from fastevm.node.remote.chain_reset import ChainReset
from fastevm.node.remote.chain_start import ChainStart
from fastevm.node.remote.fork_history import open_source
from fastevm.node.remote.kept_fork import (
    begun_options,
    kept_fork,
    offline_options,
    resumed_options,
    stored_fork,
)
from fastevm.node.remote.options import ForkOptions
from fastevm.node.remote.partial_follower import FOLLOWED_STATES
from fastevm.node.remote.start import forked_chain


def forked_node(
    options: ForkOptions,
    *,
    accounts: int = 10,
    mnemonic: str = TEST_MNEMONIC,
    derivation_path: str = DERIVATION_PATH,
    balance: int = DEV_BALANCE,
    chain_id: int | None = None,
    block_time_ms: int | None = None,
    slice_interval_ms: int | None = None,
    parameters: Mapping[str, Value] | None = None,
    without_work: bool = False,
    shares_seconds: bool = False,
    mining: Mining = Mining.CADENCE,
    limits: ChainLimits | None = None,
    timestamp: int | None = None,
    directory: DataDirectory | None = None,
    progress: Progress | None = None,
    **more: Any,
) -> Node:
    """Returns a node that builds blocks on a fork of another node's chain.

    ``accounts`` accounts of the mnemonic get ``balance`` wei. ``timestamp`` (seconds): start of the
    clock; default: the time of the fork block. ``without_work``: blocks before the merge need no
    proof of work. ``directory`` stores the chain and the fetched state: the next node with it
    continues the chain and does not fetch that state again. ``progress``: see :func:`genesis_node`.
    Raises StorageError if the directory has another chain, block, rules or block time. Other
    arguments and errors: see :func:`forked_chain`; ``more``: see :class:`Node`.
    """
    wallet = dev_accounts(accounts, mnemonic, derivation_path)
    start = partial(
        forked_chain,
        parameters=parameters,
        work_parameters=NO_WORK if without_work else None,
        shares_seconds=shares_seconds,
        chain_id=chain_id,
        block_time_ms=block_time_ms,
        slice_interval_ms=slice_interval_ms,
    )
    funded = balances_of(wallet, balance)
    limits = limits_of(mining, limits or ChainLimits())
    more |= {"accounts": wallet, "mining": mining}
    if directory is not None:
        if mining is Mining.NEVER:
            raise StorageError("a fork that follows its upstream is not kept in a data directory")
        chain, begin = _kept_chain(directory, options, start, funded, limits, progress)
        is_new = directory.development.state is None
        node = _made_node(chain, begin, directory=directory, **more)
        if is_new:
            _set_clock(node, timestamp)
        return node
    begin, replayed = _begun(options, start, funded)
    if mining is Mining.NEVER and is_arbitrum(begin.block.header):
        raise ValueError(
            "--follow: the blocks of Arbitrum's chains cannot be executed, because messages from L1"
            " and retries are not supported; without it the fork builds blocks of its own"
        )
    chain = _chain_of(begin, limits)
    chain.archive = Archive(ScratchBlocks())
    _append(chain, begin, replayed)
    node = _made_node(chain, begin, **more)
    _set_clock(node, timestamp)
    if mining is not Mining.NEVER:
        unforked = DevChain(chain_id=DEV_CHAIN_ID if chain_id is None else chain_id)
        node.development.reset = ChainReset(
            node, lambda options: start(options, funded), lambda: unforked.start(wallet)
        )
    return node


def kept_chain(directory: DataDirectory, limits: ChainLimits) -> Chain:
    """Returns the chain of a fork in a data directory, without connecting to its upstream.

    Raises StorageError if the directory has no fork, and ForkError if it lacks a value that a block
    reads.
    """
    pace = directory.pace
    times: dict[str, Any] = {} if pace is None else pace.times
    stored = stored_fork(directory)
    if stored is None:
        raise StorageError(f"{directory.path} does not contain a chain")
    options = offline_options(directory, stored)
    start = partial(
        forked_chain,
        parameters=stored.parameters,
        shares_seconds=stored.shares_seconds,
        chain_id=directory.chain_id,
        **times,
    )
    return _kept_chain(directory, options, start, stored.balances, limits, None)[0]


def _kept_chain(
    directory: DataDirectory,
    options: ForkOptions,
    start: Any,
    funded: Mapping[bytes, int],
    limits: ChainLimits,
    progress: Progress | None,
) -> tuple[Chain, ChainStart]:
    """Returns the chain of the fork in a directory, and how the fork started."""
    stored = stored_fork(directory)
    replayed: _Replayed = None
    if stored is None:
        begin, replayed = _begun(begun_options(options, directory), start, funded)
        stored = kept_fork(begin, options.transaction, funded)
    else:
        resumed = resumed_options(options, directory, stored)
        begin = start(resumed, stored.balances, chain_id=directory.chain_id)
        rules = (dict(begin.config.parameters), begin.config.shares_seconds)
        if rules != (stored.parameters, stored.shares_seconds):
            raise StorageError(
                f"{directory.path} holds a fork with the rules {stored.parameters}, not {rules[0]}:"
                " give the same options, or another --datadir"
            )
    config = begin.config
    pace = Pace(config.block_time_ms, config.slice_interval_ms)
    directory.claim(stored.genesis(), begin.block.hash, config.chain_id, pace)
    chain = directory.restore(partial(_chain_of, begin, limits), progress)
    is_new = directory.blocks.file.is_empty
    # an earlier process ended before it added the block of replayed transactions
    if is_new and stored.transaction is not None and replayed is None:
        replayed = _block_of(options, bytes.fromhex(stored.transaction[2:]))
    if is_new:
        _append(chain, begin, replayed)
    return chain, begin


# a block, and the number of its transactions to replay
_Replayed = tuple[fork.RemoteBlock, int] | None


def _begun(
    options: ForkOptions, start: Any, funded: Mapping[bytes, int]
) -> tuple[ChainStart, _Replayed]:
    """Returns the start of a new fork, and the transactions of the next block to replay.

    These are the transactions before the transaction that the options name.
    """
    replayed = None
    if options.transaction is not None:
        replayed = _block_of(options, options.transaction)
        parent = replayed[0].header.parent_hash
        options = replace(options, block=parent, transaction=None)
    return start(options, funded), replayed


def _append(chain: Chain, begin: ChainStart, replayed: _Replayed) -> None:
    """Adds the replayed transactions as a block."""
    if replayed is not None and replayed[1]:
        block, count = replayed
        chain.append(*block.sealed(count, begin.layer))


def _block_of(options: ForkOptions, transaction: bytes) -> tuple[fork.RemoteBlock, int]:
    """Returns the block of an upstream transaction, and the transaction's index in the block.

    Raises ForkError.
    """
    with open_source(options) as newest:
        block_hash, index = fork.block_and_index(fork.receipt_of(newest, transaction))
        return fork.RemoteBlock(newest, fork.rules_of(newest, options.hardfork), block_hash), index


def _chain_of(begin: ChainStart, limits: ChainLimits) -> Chain:
    return Chain(begin.config, begin.block, begin.layer, limits=limits, partial=True)


def _set_clock(node: Node, timestamp: int | None) -> None:
    now = node.chain.head.header.timestamp if timestamp is None else timestamp
    node.producer.clock.set_now(now)
    if node.mining is not Mining.NEVER:
        node.development.required().keep()


def limits_of(mining: Mining, limits: ChainLimits) -> ChainLimits:
    """Returns how many states a forked chain keeps.

    A followed chain keeps fewer states, because they also hold fetched values.
    """
    if mining is not Mining.NEVER:
        return limits
    return replace(limits, states=min(limits.states, FOLLOWED_STATES))


def _made_node(chain: Chain, begin: ChainStart, **more: Any) -> Node:
    node = Node(chain, fork=begin.history, **more)
    if is_arbitrum(chain.head.header):
        node.submission.min_tip = 0  # Arbitrum ignores tips
    return node
