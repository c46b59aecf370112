"""Replays a transaction of a remote chain and compares the outcome with its receipt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from fastevm.core.execution.types import Log, Receipt
from fastevm.core.primitives.config_values import read_bytes, read_number
from fastevm.core.simulation.values import StateView
from fastevm.fork.remote_block import RemoteBlock, block_and_index, receipt_of
from fastevm.fork.remote_source import RemoteSource
from fastevm.fork.rules import rules_of
from fastevm.tracing import TraceRequest, trace_transaction


class Replay(Struct, frozen=True):
    """The outcome of a replayed transaction.

    ``trace`` is its call tree, and ``state_difference`` has ``pre`` and ``post`` of its changes,
    both in the JSON form of debug_traceTransaction. ``differences`` describes differences from the
    chain's receipt.
    """

    transaction_hash: bytes
    block_number: int
    index: int
    receipt: Receipt
    trace: Mapping[str, Any]
    state_difference: Mapping[str, Any]
    differences: tuple[str, ...]

    @property
    def matches(self) -> bool:
        """Whether status, gas and logs equal those on the chain."""
        return not self.differences


def replay(
    url: str | Sequence[str],
    transaction_hash: bytes | str,
    *,
    hardfork: str | None = None,
    **options: Any,
) -> Replay:
    """Replays a transaction of a remote chain, after the preceding transactions of its block.

    ``options``: see `RemoteSource.open`. Raises ForkError if the endpoint does not know the
    transaction or the transaction is pending, and InvalidBlock if the block cannot be executed.
    """
    with RemoteSource.open(url, "latest", **options) as source:
        receipt = receipt_of(source, transaction_hash)
        block_hash, index = block_and_index(receipt)
        block = RemoteBlock(source, rules_of(source, hardfork), block_hash)
        return replay_in(block, index, receipt)


def replay_in(block: RemoteBlock, index: int, expected: Mapping[str, Any]) -> Replay:
    """Replays a transaction of a block. ``expected``: its receipt as a JSON object."""
    transactions = block.transactions[: index + 1]
    receipt = block.executed(index + 1).receipt(index)
    view = StateView(
        header=block.header,
        block_hash=block.hash,
        layer=block.layer,
        ancestors=(block.header.parent_hash,),
        schedule=block.schedule,
        config=block.config,
    )

    def traced(tracer: str, **config: Any) -> Any:
        request = TraceRequest(tracer=tracer, config=config or None)
        found = trace_transaction(view, transactions, index, request)
        return msgspec.json.decode(found) if isinstance(found, msgspec.Raw) else found

    return Replay(
        transaction_hash=transactions[index].hash,
        block_number=block.header.number,
        index=index,
        receipt=receipt,
        trace=traced("callTracer", withLog=True),
        state_difference=traced("prestateTracer", diffMode=True),
        differences=tuple(differences(receipt, expected)),
    )


def differences(receipt: Receipt, expected: Mapping[str, Any]) -> list[str]:
    """Describes the differences between a local receipt and the chain's: status, gas, logs."""
    found = []
    status = None if expected.get("status") is None else read_number(expected["status"], "status")
    if status != receipt.status:
        found.append(f"status: {receipt.status} here, {status} on the chain")
    gas_used = read_number(expected.get("gasUsed"), "gasUsed")
    if gas_used != receipt.gas_used:
        found.append(f"gas used: {receipt.gas_used} here, {gas_used} on the chain")
    logs = [_log(item) for item in expected.get("logs") or ()]
    if len(logs) != len(receipt.logs):
        found.append(f"logs: {len(receipt.logs)} here, {len(logs)} on the chain")
    for index, (own, other) in enumerate(zip(receipt.logs, logs, strict=False)):
        if own != other:
            found.append(f"log {index}: {own} here, {other} on the chain")
    return found


def _log(found: Mapping[str, Any]) -> Log:
    return Log(
        read_bytes(found.get("address"), "address", 20),
        tuple(read_bytes(topic, "topics", 32) for topic in found.get("topics") or ()),
        read_bytes(found.get("data"), "data"),
    )
