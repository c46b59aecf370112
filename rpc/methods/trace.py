"""debug_trace*: traces of transactions, blocks and calls in go-ethereum's formats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct, field

from fastevm import tracing
from fastevm.core.execution.types import Block
from fastevm.core.primitives.hex import hex_bytes
from fastevm.core.primitives.replace import replace
from fastevm.rpc.block_id import BlockId
from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.envelope import encode
from fastevm.rpc.dispatch.long_answer import Answer, LongAnswer
from fastevm.rpc.dispatch.params import BLOCK, HASH, NUMBER_OR_TAG, decode_text
from fastevm.rpc.dispatch.registry import Param, RunOn, method
from fastevm.rpc.dispatch.workers import long_running
from fastevm.rpc.errors import RpcError
from fastevm.rpc.methods.transactions import locate_or_look
from fastevm.rpc.view import View, base_of
from fastevm.rpc_types.blocks import block_from_rlp
from fastevm.rpc_types.call_object import decode_call
from fastevm.rpc_types.overrides import decode_block_overrides, decode_state_overrides
from fastevm.rpc_types.quantity import (
    DecodeError,
    decode_bool,
    decode_bytes,
    decode_uint64,
    object_fault,
)
from fastevm.rpc_types.value_forms import GETH, STRICT, Form
from fastevm.simulate import BlockOverrides, CallRequest, StateOverrides, StateView
from fastevm.tracing import (
    Spool,
    SpooledText,
    StepOptions,
    TraceRequest,
    TracingError,
    seconds_of,
)

LARGEST_LIMIT = 2**63

STEP_FLAGS: Mapping[str, tuple[str, bool]] = {
    "enableMemory": ("memory", True),
    "disableStack": ("stack", False),
    "disableStorage": ("storage", False),
    "enableReturnData": ("return_data", True),
}


class CallTraceConfig(Struct, frozen=True):
    """The options of debug_traceCall."""

    request: TraceRequest = field(default_factory=TraceRequest)
    state_overrides: StateOverrides = field(default_factory=dict)
    block_overrides: BlockOverrides = field(default_factory=BlockOverrides)
    index: int | None = None


def decode_trace_config(value: Any) -> TraceRequest:
    """Decode a trace configuration: tracer, tracer options, struct log options and timeout."""
    if not isinstance(value, dict):
        raise object_fault(value, "tracers.TraceConfig")
    config = value.get("tracerConfig")
    if config is not None and not isinstance(config, dict):
        raise object_fault(config, "map", "TraceConfig.tracerConfig")
    tracer, timeout = value.get("tracer"), value.get("timeout")
    request = TraceRequest(
        tracer=None if tracer is None else decode_text(tracer),
        config=config,
        steps=_step_options(value),
    )
    if timeout is None:
        return request
    try:
        return replace(request, timeout=seconds_of(decode_text(timeout)))
    except TracingError as fault:
        raise DecodeError(str(fault)) from None


def _step_options(value: dict[str, Any]) -> StepOptions:
    options: dict[str, Any] = {}
    for member, (name, meaning) in STEP_FLAGS.items():
        if value.get(member) is not None:
            flag = decode_bool(value[member], field=f"TraceConfig.{member}")
            options[name] = meaning if flag else not meaning
    limit = value.get("limit")
    if limit is not None:
        if isinstance(limit, bool) or not isinstance(limit, int):
            raise object_fault(limit, "int", "TraceConfig.limit")
        if limit >= LARGEST_LIMIT:
            raise DecodeError(f"TraceConfig.limit: more than {LARGEST_LIMIT - 1}")
        options["limit"] = max(limit, 0)
    return StepOptions(**options)


def decode_call_trace_config(value: Any, form: Form = GETH) -> CallTraceConfig:
    """Decode a trace configuration with overrides and the index of the preceding transaction."""
    request = decode_trace_config(value)
    index = value.get("txIndex")
    return CallTraceConfig(
        request,
        decode_state_overrides(value.get("stateOverrides"), form),
        decode_block_overrides(value.get("blockOverrides"), form),
        None if index is None else decode_uint64(index, field="TraceCallConfig.txIndex"),
    )


CONFIG = Param(decode_trace_config, optional=True, default=TraceRequest())
CALL_CONFIG = Param(
    decode_call_trace_config,
    optional=True,
    default=CallTraceConfig(),
    strict=partial(decode_call_trace_config, form=STRICT),
)


@method("debug_traceTransaction", HASH, CONFIG, run_on=RunOn.WORKER)
@long_running
def trace_one(context: Context, tx_hash: bytes, request: TraceRequest) -> Answer:
    """Return the trace of a mined or pre-confirmed transaction."""
    found = locate_or_look(context, tx_hash)
    if found is None:
        raise RpcError("server_error", "transaction not found")
    view, index = found
    spool = Spool(context.trace_room)
    return text_of(
        tracing.trace_transaction(
            base_of(view), view.block.transactions, index, request, spool=spool
        )
    )


@method("debug_traceBlockByNumber", NUMBER_OR_TAG, CONFIG, run_on=RunOn.WORKER)
@long_running
def trace_by_number(context: Context, block: BlockId, request: TraceRequest) -> Answer:
    """Return the traces of all transactions of a block."""
    return _traces(context, view_of(context, block), request)


@method("debug_traceBlockByHash", HASH, CONFIG, run_on=RunOn.WORKER)
@long_running
def trace_by_hash(context: Context, block_hash: bytes, request: TraceRequest) -> Answer:
    """Return the traces of all transactions of a block, canonical or not."""
    return _traces(context, view_of(context, BlockId(hash=block_hash)), request)


def decode_rlp_block(value: Any) -> Block:
    """Decode the RLP of a block."""
    try:
        return block_from_rlp(decode_bytes(value))
    except ValueError as fault:
        raise DecodeError(f"could not decode block: {fault}") from None


@method("debug_traceBlock", Param(decode_rlp_block), CONFIG, run_on=RunOn.WORKER)
@long_running
def trace_encoded(context: Context, block: Block, request: TraceRequest) -> Answer:
    """Return the traces of all transactions of an RLP-encoded block.

    The chain must have the parent of the block. It need not have the block.
    """
    chain, header, most = context.node.chain, block.header, context.limits.request_gas
    gas = min(header.gas_limit, sum(item.gas_limit for item in block.transactions))
    if gas > most:
        raise RpcError("invalid_params", f"the block may use {gas} gas, more than {most}")
    parent = chain.block_by_hash(header.parent_hash)
    if parent is None:
        raise RpcError("server_error", f"parent {hex_bytes(header.parent_hash)} not found")
    view = StateView(
        header=header,
        block_hash=header.hash,
        layer=chain.layer_of(header.parent_hash),
        ancestors=chain.ancestors(header.parent_hash),
        schedule=chain.schedule_for_child(parent, header.timestamp),
        config=context.node.config,
    )
    return _traces_on(context, view, block.transactions, request)


@method("debug_traceCall", Param(decode_call), BLOCK, CALL_CONFIG, run_on=RunOn.WORKER)
@long_running
def trace_one_call(
    context: Context, call: CallRequest, block: BlockId, config: CallTraceConfig
) -> Answer:
    """Return the trace of a call on the state after a block, or after some of its transactions.

    ``pending`` selects the pre-confirmed state, and the environment of the pending block.
    """
    view = view_of(context, block) if config.index is not None else state_view_of(context, block)
    before, state = None, None
    if config.index is not None:
        transactions = view.block.transactions
        if config.index >= max(len(transactions), 1):
            name = hex_bytes(view.block.hash)
            text = f"transaction index {config.index} out of range for block {name}"
            raise RpcError("server_error", text)
        before, state = transactions[: config.index], base_of(view)
    trace = tracing.trace_call(
        state or view.state(),
        call,
        config.request,
        before=before,
        state_overrides=config.state_overrides,
        block_overrides=config.block_overrides,
        gas_cap=context.limits.call_gas,
        spool=Spool(context.trace_room),
        shows_base_fee=context.dialect.free_calls_see_base_fee,
    )
    return text_of(trace)


def _traces(context: Context, view: View, request: TraceRequest) -> Answer:
    if view.block.header.number == 0 and context.dialect.block_zero_has_empty_trace:
        return b"[]"
    return _traces_on(context, base_of(view), view.block.transactions, request)


def _traces_on(
    context: Context, base: StateView, transactions: Sequence[Any], request: TraceRequest
) -> Answer:
    traces = tracing.trace_block(base, transactions, request, spool=Spool(context.trace_room))
    return list_of(
        {"txHash": hex_bytes(transaction.hash), "result": trace}
        for transaction, trace in zip(transactions, traces, strict=True)
    )


def list_of(traces: Iterable[Any]) -> Answer:
    """Return a list of traces as JSON text."""
    parts: list[bytes | SpooledText] = []
    for trace in traces:
        parts += (b"," if parts else b"[", *_parts_of(trace))
    return _answer_of([*parts, b"]"] if parts else [b"[]"])


def text_of(trace: Any) -> Answer:
    """Return a trace as JSON text."""
    return _answer_of(_parts_of(trace))


def _answer_of(parts: list[bytes | SpooledText]) -> Answer:
    texts = [part for part in parts if isinstance(part, bytes)]
    return b"".join(texts) if len(texts) == len(parts) else LongAnswer(parts)


def _parts_of(trace: Any) -> list[bytes | SpooledText]:
    """Return a trace as parts of JSON text. The trace or some of its members may be spooled."""
    if isinstance(trace, SpooledText | bytes):
        return [trace]
    if isinstance(trace, LongAnswer):
        return list(trace.parts)
    if not _is_spooled(trace):
        return [encode(trace)]
    parts: list[bytes | SpooledText] = []
    for name, value in trace.items():
        parts.append(b"%b%b:" % (b"," if parts else b"{", encode(name)))
        parts += _parts_of(value)
    return [*parts, b"}"]


def _is_spooled(value: Any) -> bool:
    """Return whether a part of a trace is in a spool file."""
    if isinstance(value, dict):
        return any(map(_is_spooled, value.values()))
    return isinstance(value, SpooledText)


def view_of(context: Context, block: BlockId) -> View:
    return _known(context.find(block), block)


def state_view_of(context: Context, block: BlockId) -> View:
    return _known(context.found(block), block)


def _known(view: View | None, block: BlockId) -> View:
    if view is not None:
        return view
    if block.hash is not None:
        raise RpcError("server_error", f"block {hex_bytes(block.hash)} not found")
    raise RpcError("server_error", f"block #{block.number} not found")
