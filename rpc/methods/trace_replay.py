"""trace_replay* and trace_call*: frames, ops and state differences in Parity's format."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from fastevm import tracing
from fastevm.core.primitives.hex import hex_bytes
from fastevm.errors import TransactionDecodeError
from fastevm.rpc.block_id import BlockId
from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.long_answer import Answer
from fastevm.rpc.dispatch.params import BLOCK_OR_LATEST, DATA, HASH, NUMBER_OR_TAG, decode_text
from fastevm.rpc.dispatch.registry import Param, RunOn, method
from fastevm.rpc.dispatch.workers import long_running
from fastevm.rpc.errors import RpcError
from fastevm.rpc.limits import TRACED_CALLS
from fastevm.rpc.methods.calls import BLOCK_OVERRIDES, CALL, STATE_OVERRIDES
from fastevm.rpc.methods.trace import list_of, text_of
from fastevm.rpc.methods.transactions import locate_or_look
from fastevm.rpc.view import base_of
from fastevm.rpc_types.call_object import decode_call
from fastevm.rpc_types.quantity import DecodeError, object_fault
from fastevm.simulate import BlockOverrides, CallRequest, StateOverrides
from fastevm.tracing import Spool, TraceRequest

Types = frozenset[str]
FRAMES_ONLY: Final = frozenset(("trace",))  # a subset of ``tracing.TYPES``


def decode_types(value: Any) -> Types:
    """Decode a list of trace types."""
    if not isinstance(value, list):
        raise object_fault(value, "[]string")
    types = frozenset(map(decode_text, value))
    for unknown in sorted(types.difference(tracing.TYPES)):
        raise DecodeError(
            f'unknown trace type "{unknown[:64]}": there are {", ".join(tracing.TYPES)}'
        )
    return types


def decode_typed_calls(value: Any) -> list[tuple[CallRequest, Types]]:
    """Decode pairs of a call and its trace types."""
    if not isinstance(value, list):
        raise object_fault(value, "[][]any")
    if len(value) > TRACED_CALLS:
        raise DecodeError(f"more than {TRACED_CALLS} calls")
    found = []
    for pair in value:
        if not isinstance(pair, list) or len(pair) != 2:
            raise DecodeError("expected pairs of a call and a list of trace types")
        found.append((decode_call(pair[0]), decode_types(pair[1])))
    return found


TYPES_PARAM: Final = Param(decode_types)


def request_of(types: Types) -> TraceRequest:
    """Return the trace request for these types."""
    return TraceRequest(make=partial(tracing.ReplayTracer, types))


@method("trace_replayTransaction", HASH, TYPES_PARAM, run_on=RunOn.WORKER)
@long_running
def replay_transaction(context: Context, tx_hash: bytes, types: Types) -> Answer:
    """Return the traces of a mined or pre-confirmed transaction. Raises RpcError if none exists."""
    found = locate_or_look(context, tx_hash)
    if found is None:
        raise RpcError("server_error", "transaction not found")
    view, index = found
    transactions, spool = view.block.transactions, Spool(context.trace_room)
    return text_of(
        tracing.trace_transaction(
            base_of(view), transactions, index, request_of(types), spool=spool
        )
    )


@method("trace_replayBlockTransactions", NUMBER_OR_TAG, TYPES_PARAM, run_on=RunOn.WORKER)
@long_running
def replay_block(context: Context, block: BlockId, types: Types) -> Answer:
    """Return the traces of each transaction of a block; an empty list for an unknown block."""
    view = context.find(block)
    transactions = () if view is None else view.block.transactions
    if view is None or not transactions:
        return b"[]"
    spool = Spool(context.trace_room)
    traces = tracing.trace_block(base_of(view), transactions, request_of(types), spool=spool)
    return list_of(
        {"transactionHash": hex_bytes(transaction.hash)} | trace
        for transaction, trace in zip(transactions, traces, strict=True)
    )


@method(
    "trace_call",
    CALL,
    Param(decode_types, optional=True, default=FRAMES_ONLY),
    BLOCK_OR_LATEST,
    STATE_OVERRIDES,
    BLOCK_OVERRIDES,
    run_on=RunOn.WORKER,
)
@long_running
def replay_call(
    context: Context,
    call: CallRequest,
    types: Types,
    block: BlockId,
    state_overrides: StateOverrides,
    block_overrides: BlockOverrides,
) -> Answer:
    """Return the traces of a call, or its frames if no type is given."""
    (trace,) = tracing.trace_calls(
        context.view(block).state(),
        [tracing.TracedCall(call, request_of(types or FRAMES_ONLY), block_overrides)],
        state_overrides=state_overrides,
        gas_cap=context.limits.call_gas,
        spool=Spool(context.trace_room),
        shows_base_fee=context.dialect.free_calls_see_base_fee,
    )
    return text_of(trace)


@method("trace_callMany", Param(decode_typed_calls), BLOCK_OR_LATEST, run_on=RunOn.WORKER)
@long_running
def replay_calls(
    context: Context, calls: list[tuple[CallRequest, Types]], block: BlockId
) -> Answer:
    """Return the traces of calls, each executed on the state after the previous one.

    All calls share the time limit of a call and the gas limit of a request.
    """
    traces = tracing.trace_calls(
        context.view(block).state(),
        [tracing.TracedCall(call, request_of(types)) for call, types in calls],
        gas_cap=context.limits.call_gas,
        gas_budget=context.limits.request_gas,
        timeout=context.limits.call_time,
        spool=Spool(context.trace_room),
        shows_base_fee=context.dialect.free_calls_see_base_fee,
    )
    return list_of(traces)


@method("trace_rawTransaction", DATA, TYPES_PARAM, BLOCK_OR_LATEST, run_on=RunOn.WORKER)
@long_running
def replay_raw(context: Context, raw: bytes, types: Types, block: BlockId) -> Answer:
    """Return the traces of a signed, valid transaction. Does not submit the transaction."""
    view, spool = context.view(block).state(), Spool(context.trace_room)
    try:
        (trace,) = tracing.trace_calls(
            view, [tracing.TracedCall(raw, request_of(types))], spool=spool
        )
    except TransactionDecodeError as fault:
        raise RpcError("invalid_params", str(fault)) from None
    return text_of(trace)
