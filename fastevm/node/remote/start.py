"""The start of a forked chain: its rules, its first block and its state."""

from __future__ import annotations

from collections.abc import Mapping

import fastevm.fork as fork
from fastevm.chain.config import ChainConfig
from fastevm.chain.genesis import read_accounts
from fastevm.chain.system_contracts import BUILDER_CONTRACTS, SYSTEM_CONTRACTS
from fastevm.core.execution.op_stack.base_time import BLOCK_MILLIS
from fastevm.core.execution.types import Block
from fastevm.core.primitives.replace import replace
from fastevm.core.spec.parameters import Value
from fastevm.core.spec.schedule import ForkSchedule
from fastevm.core.state.layer import Layer
from fastevm.core.state.remote import RemoteState
from fastevm.core.state.source import Wanted
from fastevm.fork.arbitrum import opening_slots
from fastevm.node.remote.chain_start import ChainStart
from fastevm.node.remote.fork_history import ForkHistory, open_source
from fastevm.node.remote.options import ForkOptions
from fastevm.rpc_types.blocks import block_from_json, header_from_json

CONTRACTS = read_accounts(SYSTEM_CONTRACTS | BUILDER_CONTRACTS)


def forked_chain(
    options: ForkOptions,
    funded: Mapping[bytes, int] | None = None,
    *,
    chain_id: int | None = None,
    block_time_ms: int | None = None,
    slice_interval_ms: int | None = None,
    parameters: Mapping[str, Value] | None = None,
    work_parameters: Mapping[str, Value] | None = None,
    shares_seconds: bool = False,
) -> ChainStart:
    """Returns the start of a chain that continues from the block in the options.

    ``funded``: balances in wei by address; the code of these accounts is removed. ``chain_id``: the
    chain id to use in place of the upstream's. ``parameters`` and ``shares_seconds``: see
    ``ChainConfig``; ``work_parameters``: more parameters, for blocks with proof of work. Raises
    ForkError, ValueError for invalid rules, and UnknownForkError.
    """
    source = open_source(options)
    config = fork.rules_of(source, options.hardfork)
    config = replace(
        config,
        chain_id=config.chain_id if chain_id is None else chain_id,
        block_time_ms=block_time_ms or config.block_time_ms,
        slice_interval_ms=slice_interval_ms or config.slice_interval_ms,
        shares_seconds=shares_seconds or config.shares_seconds,
    )
    block = _first_block(source, config)
    schedule = config.activations.at(block.number, block.header.timestamp)
    if schedule.parameters["has_base_time"]:
        if block_time_ms not in (None, BLOCK_MILLIS):
            raise ValueError(f"block time: the rules require {BLOCK_MILLIS}, found {block_time_ms}")
        config = replace(config, block_time_ms=BLOCK_MILLIS, slice_interval_ms=BLOCK_MILLIS)
    if not schedule.parameters["proof_of_stake"]:
        config = config.with_parameters(work_parameters or {})
    config = config.with_parameters(parameters or {})
    history = ForkHistory(source, options, prepared)
    layer = prepared(RemoteState(history), schedule, funded)
    return ChainStart(config, block, layer, history)


def prepared(
    state: RemoteState, schedule: ForkSchedule, funded: Mapping[bytes, int] | None = None
) -> Layer:
    """Returns the state at the fork with ``funded`` accounts.

    A development upstream may lack system contracts that its rules require, so these contracts are
    added. One account is fetched first, to find out whether the endpoint supports a method that
    reads each further account with one call instead of three. Raises ForkError.
    """
    called = [contract for contract in schedule.system_contracts.values() if contract in CONTRACTS]
    funded = funded or {}
    accounts = {*called, *funded}
    state.fetch(Wanted(accounts=set(called[:1]), slots=opening_slots(schedule)))
    state.fetch(Wanted(accounts=accounts))
    layer = Layer.remote(state)
    changes = {item: CONTRACTS[item] for item in called if not layer.code(item)}
    changes |= {address: {"balance": wei, "code": b""} for address, wei in funded.items()}
    return layer.with_accounts(changes) if changes else layer


def _first_block(source: fork.RemoteSource, config: ChainConfig) -> Block:
    """Returns the fork block with its header, and with transactions if fees depend on the first
    one.
    """
    header = header_from_json(source.header).under_hash(source.block_hash)
    schedule = config.activations.at(header.number, header.timestamp)
    if not schedule.parameters["has_deposits"]:
        return Block(header)
    found = source.request("eth_getBlockByHash", ["0x" + source.block_hash.hex(), True])
    return block_from_json(found)
