"""Creates a node whose chain continues from a block of another node's chain."""

from __future__ import annotations

from typing import Any

import fastevm.fork as fork
from fastevm.chain.chain import Chain
from fastevm.chain.retention import ChainLimits
from fastevm.chain.storage import Archive, ScratchBlocks
from fastevm.core.primitives.replace import replace
from fastevm.node.dev_accounts import DERIVATION_PATH, TEST_MNEMONIC, dev_accounts
from fastevm.node.dev_chain import DEV_CHAIN_ID, DevChain
from fastevm.node.node import Mining, Node
from fastevm.node.remote.chain_reset import ChainReset
from fastevm.node.remote.chain_start import ChainStart
from fastevm.node.remote.fork_history import open_source
from fastevm.node.remote.options import ForkOptions
from fastevm.node.remote.partial_follower import FOLLOWED_STATES
from fastevm.node.remote.start import forked_chain


def forked_node(
    options: ForkOptions,
    *,
    accounts: int = 10,
    mnemonic: str = TEST_MNEMONIC,
    derivation_path: str = DERIVATION_PATH,
    chain_id: int | None = None,
    block_time_ms: int | None = None,
    slice_interval_ms: int | None = None,
    mining: Mining = Mining.CADENCE,
    limits: ChainLimits | None = None,
    timestamp: int | None = None,
    **more: Any,
) -> Node:
    """Returns a node that builds blocks on another node's chain. Its clock continues from the
    fork.

    ``timestamp`` (seconds): where the clock starts instead. Arguments and errors: see
    :func:`forked_chain`; ``more``: see :class:`Node`.
    """
    funded = dev_accounts(accounts, mnemonic, derivation_path)
    pace = {"block_time_ms": block_time_ms, "slice_interval_ms": slice_interval_ms}

    def start(options: ForkOptions) -> ChainStart:
        return forked_chain(options, funded, chain_id=chain_id, **pace)

    replayed, count = None, 0
    if options.transaction is not None:
        replayed, count = _block_of(options, options.transaction)
        options = replace(options, block=replayed.header.parent_hash, transaction=None)
    begin = start(options)
    chain = _chain_of(begin, limits_of(mining, limits or ChainLimits()))
    if replayed is not None and count:
        chain.append(*replayed.sealed(count, begin.layer))
    node = Node(chain, accounts=funded, mining=mining, fork=begin.history, **more)
    node.producer.clock.set_now(chain.head.header.timestamp if timestamp is None else timestamp)
    if mining is Mining.NEVER:
        return node
    unforked = DevChain(chain_id=DEV_CHAIN_ID if chain_id is None else chain_id)
    node.development.reset = ChainReset(node, start, lambda: unforked.start(funded))
    return node


def _block_of(options: ForkOptions, transaction: bytes) -> tuple[fork.RemoteBlock, int]:
    """Returns the block of an upstream transaction, and how many transactions precede it. Raises
    ForkError.
    """
    with open_source(options) as newest:
        block_hash, index = fork.block_and_index(fork.receipt_of(newest, transaction))
        return fork.RemoteBlock(newest, fork.rules_of(newest, options.hardfork), block_hash), index


def _chain_of(begin: ChainStart, limits: ChainLimits) -> Chain:
    chain = Chain(begin.config, begin.block, begin.layer, limits=limits, partial=True)
    chain.archive = Archive(ScratchBlocks())
    return chain


def limits_of(mining: Mining, limits: ChainLimits) -> ChainLimits:
    """Returns how many states a forked chain keeps. A follower also keeps the known values below
    its states.
    """
    if mining is not Mining.NEVER:
        return limits
    return replace(limits, states=min(limits.states, FOLLOWED_STATES))
