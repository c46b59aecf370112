"""Creates nodes from a genesis file or for a development chain."""

from collections.abc import Mapping, Sequence
from typing import Any

from fastevm.chain.chain import Chain
from fastevm.chain.config import ChainConfig
from fastevm.chain.genesis import genesis_block
from fastevm.chain.retention import ChainLimits
from fastevm.chain.storage import Archive, DataDirectory, ScratchBlocks
from fastevm.chain.storage.block_journal import Progress
from fastevm.chain.storage.genesis_file import Pace
from fastevm.core.primitives.config_values import read_number
from fastevm.node import remote
from fastevm.node.dev_accounts import (
    DERIVATION_PATH,
    TEST_MNEMONIC,
    DevAccount,
    balances_of,
    dev_accounts,
)
from fastevm.node.dev_chain import DevChain
from fastevm.node.node import Mining, Node
from fastevm.node.production.block_clock import BlockClock
from fastevm.node.remote.chain_reset import ChainReset
from fastevm.node.remote.kept_fork import refuse_fork

PACE = {"block_time_ms", "slice_interval_ms", "fixed_block_time", "shares_seconds", "parameters"}
DEV_FACTS = {*DevChain.__struct_fields__}


def dev_genesis(accounts: Sequence[DevAccount], **facts: Any) -> dict[str, Any]:
    """Returns the genesis in geth's format. ``facts``: arguments of :class:`DevChain`."""
    return DevChain(**facts).genesis(accounts)


def dev_node(
    *,
    accounts: int = 10,
    mnemonic: str = TEST_MNEMONIC,
    derivation_path: str = DERIVATION_PATH,
    mining: Mining = Mining.CADENCE,
    directory: DataDirectory | None = None,
    **options: Any,
) -> Node:
    """Returns a node that builds blocks on a development chain.

    ``accounts`` accounts of the mnemonic are funded. ``options``: arguments of :class:`DevChain` (a
    chain in ``directory`` keeps its ``timestamp``) and of :func:`genesis_node`. Raises ValueError
    for an invalid configuration.
    """
    funded = dev_accounts(accounts, mnemonic, derivation_path)
    begun = DevChain(**{name: options.pop(name) for name in DEV_FACTS & options.keys()})
    stored = None if directory is None else directory.genesis
    genesis = begun.genesis(funded)
    if begun.timestamp is None and stored is not None:
        genesis["timestamp"] = hex(read_number(stored.get("timestamp", 0), "timestamp"))
    options |= {"mining": mining, "directory": directory, "accounts": funded}
    millis = begun.block_millis
    if millis is not None:
        for name in ("block_time_ms", "slice_interval_ms"):
            if options.setdefault(name, millis) != millis:
                raise ValueError(f"{name}: the rules require {millis}, found {options[name]}")
    if begun.parameters:
        options["parameters"] = begun.parameters | options.get("parameters", {})
    node = genesis_node(genesis, **options)
    if directory is None and mining is not Mining.NEVER:
        node.development.reset = ChainReset(
            node,
            lambda fork: remote.forked_chain(fork, balances_of(funded)),
            lambda: begun.start(funded),
        )
    return node


def genesis_node(
    genesis: Mapping[str, Any],
    *,
    accounts: Sequence[DevAccount] = (),
    produce_blocks: bool = False,
    mining: Mining | None = None,
    directory: DataDirectory | None = None,
    progress: Progress | None = None,
    limits: ChainLimits | None = None,
    genesis_hash: bytes | None = None,
    **options: Any,
) -> Node:
    """Returns a node on the chain of a genesis file (geth's format).

    ``produce_blocks``: same as ``mining=Mining.CADENCE``. ``genesis_hash`` (32 bytes): the expected
    hash. A chain in ``directory`` is restored, and ``progress(blocks, bytes, all_bytes)`` is called
    after each record. ``options``: ``block_time_ms``, ``slice_interval_ms``, ``fixed_block_time``,
    ``shares_seconds`` and ``parameters`` of ``ChainConfig.from_genesis``, and arguments of
    :class:`Node`. Raises ValueError with the name of an invalid member, or if the genesis hash
    differs. Raises StorageError (a ValueError) if the directory has another chain, or if this node
    builds blocks and the stored blocks have another block time.
    """
    pace = {name: options.pop(name) for name in PACE & options.keys()}
    config = ChainConfig.from_genesis(genesis, **pace)
    block, layer = genesis_block(genesis, config, genesis_hash=genesis_hash)
    mining = mining or (Mining.CADENCE if produce_blocks else Mining.NEVER)
    if mining is not Mining.NEVER:
        BlockClock.check(block.header.timestamp)

    def fresh() -> Chain:
        return Chain(config, block, layer, limits=limits)

    if directory is None:
        chain = _scratched(fresh())
    else:
        builds = mining is Mining.CADENCE
        built_pace = Pace(config.block_time_ms, config.slice_interval_ms) if builds else None
        refuse_fork(directory)
        directory.claim(genesis, block.hash, config.chain_id, built_pace)
        chain = directory.restore(fresh, progress)
    return Node(chain, accounts=accounts, mining=mining, directory=directory, **options)


def _scratched(chain: Chain) -> Chain:
    """Returns the chain with an archive for old blocks in a file that is deleted at exit."""
    chain.archive = Archive(ScratchBlocks())
    return chain
