"""Creates an EVM on a remote state: after a block, or before one of its transactions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeVar

from msgspec import structs

from fastevm.core.execution.block.fees import blob_base_fee
from fastevm.core.execution.types import BlockEnvironment, Header
from fastevm.core.spec.schedule import ForkSchedule
from fastevm.core.state.layer import Layer
from fastevm.core.state.remote import RemoteState
from fastevm.core.state.source import Wanted
from fastevm.evm.machine import EVM
from fastevm.fork.arbitrum import opening_slots
from fastevm.fork.block_choice import BlockLike
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
    """See ``EVM.fork``; ``kind``: the class of the machine."""
    pending = block == PENDING
    source = RemoteSource.open(url, "latest" if pending else block, **options)
    config = rules_of(source, hardfork)
    found = pending_block(source) if pending else None
    header = header_from_json(found or source.header)
    schedule = config.activations.at(header.number, header.timestamp, after_merge=None)
    if tx_index is None and found is None:
        state = RemoteState(source)
        slots = opening_slots(schedule)
        if slots:
            state.fetch(Wanted(slots=slots))
        layer = Layer.remote(state)
    else:
        executed = RemoteBlock(source, config, found or source.block_hash)
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
