"""Creates an EVM on the state after a remote block, or before one of its transactions."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import Any, Final, TypeVar

from msgspec import structs

from fastevm.chain.config import ChainConfig
from fastevm.core.execution.block.fees import blob_base_fee
from fastevm.core.execution.types import BlockEnvironment, Header
from fastevm.core.primitives.suggestion import did_you_mean
from fastevm.core.spec.schedule import ForkSchedule
from fastevm.core.state.layer import Layer
from fastevm.core.state.remote import RemoteState
from fastevm.core.state.source import Wanted
from fastevm.errors import ForkError
from fastevm.evm.machine import EVM
from fastevm.fork.arbitrum import is_arbitrum_chain, opening_slots
from fastevm.fork.block_choice import BlockLike
from fastevm.fork.carried_state import carried_state
from fastevm.fork.remote_block import RemoteBlock, pending_block
from fastevm.fork.remote_source import RemoteSource
from fastevm.fork.rules import rules_of
from fastevm.rpc_types.blocks import header_from_json

PENDING: Final = "pending"

Machine = TypeVar("Machine", bound=EVM)


def forked_evm(
    kind: type[Machine],
    url: str | Sequence[str],
    block: BlockLike = "latest",
    *,
    tx_index: int | None = None,
    hardfork: str | None = None,
    **options: Any,
) -> Machine:
    """Implements ``EVM.fork``. ``kind``: the class of the machine."""
    known = signature(RemoteSource.open).parameters
    for name in options:
        if name not in known:
            hint = did_you_mean(name, (*known, "tx_index", "hardfork"))
            raise TypeError(f"EVM.fork has no option {name!r}{hint}")
    source = RemoteSource.open(url, "latest" if block == PENDING else block, **options)
    config = rules_of(source, hardfork)
    if hardfork is not None or not is_arbitrum_chain(source):
        source.session.rules = config
    return _machine(kind, source, config, is_pending=block == PENDING, tx_index=tx_index)


def moved_evm(machine: Machine, block: BlockLike, *, tx_index: int | None = None) -> Machine:
    """Implements ``EVM.fork_at``."""
    old = machine.state.remote_state
    if old is None or not isinstance(old.source, RemoteSource):
        raise ForkError("only a machine that EVM.fork returned can move to another block")
    is_pending = block == PENDING
    source = old.source.at("latest" if is_pending else block)
    config = source.session.rules or rules_of(source)
    found = _machine(
        type(machine), source, config, is_pending=is_pending, tx_index=tx_index, old=old
    )
    found.unchecked = machine.unchecked
    found.code_size_limit = machine.code_size_limit
    return found


def _machine(
    kind: type[Machine],
    source: RemoteSource,
    config: ChainConfig,
    *,
    is_pending: bool,
    tx_index: int | None,
    old: RemoteState | None = None,
) -> Machine:
    """Returns a machine at the source's block. Keeps the values of ``old`` that did not change."""
    found = pending_block(source) if is_pending else None
    header = header_from_json(found or source.header)
    schedule = config.activations.at(header.number, header.timestamp, after_merge=None)
    if tx_index is None and found is None:
        state = carried_state(source, old)
        slots = opening_slots(schedule)
        if slots:
            state.fetch(Wanted(slots=slots))
        layer = Layer.remote(state)
    else:
        executed = RemoteBlock(source, config, found or source.block_hash, old)
        count = len(executed.transactions) if tx_index is None else tx_index
        layer = executed.state_before(count)
    return kind(schedule, state=layer, **environment_of_header(header, schedule, config.chain_id))


def environment_of_header(header: Header, schedule: ForkSchedule, chain_id: int) -> dict[str, Any]:
    """Returns the block environment of a header, as arguments of `EVM`."""
    blob_fee = 0
    if schedule.parameters["has_blobs"]:
        blob_fee = blob_base_fee(header.excess_blob_gas or 0, schedule)
    found = BlockEnvironment.of(
        header,
        chain_id=chain_id,
        blob_base_fee=blob_fee,
        merged=True,
        arbos=bool(schedule.parameters["arbos_version"]),
    )
    environment: dict[str, Any] = structs.asdict(found) | {"difficulty": header.difficulty}
    if not schedule.parameters["has_blobs"]:
        del environment["blob_base_fee"]
    return environment
