"""Runs several calls, each on the state of the previous one: eth_callMany, debug_traceCallMany.

Sources of the formats: Erigon, and the implementations of reth and anvil.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from msgspec import Struct

from fastevm import tracing
from fastevm.core.primitives.hex import hex_bytes
from fastevm.rpc.block_id import LATEST_BLOCK, BlockId, decode_block
from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.long_answer import Answer
from fastevm.rpc.dispatch.registry import Param, RunOn, method
from fastevm.rpc.dispatch.workers import long_running
from fastevm.rpc.errors import RpcError
from fastevm.rpc.limits import TRACED_CALLS
from fastevm.rpc.methods.calls import STATE_OVERRIDES
from fastevm.rpc.methods.trace import (
    CALL_CONFIG,
    CallTraceConfig,
    list_of,
    view_of,
)
from fastevm.rpc.view import base_of
from fastevm.rpc_types.call_object import decode_call
from fastevm.rpc_types.overrides import decode_block_overrides
from fastevm.rpc_types.quantity import DecodeError, object_fault
from fastevm.rpc_types.value_forms import GETH, STRICT, Form
from fastevm.simulate import (
    DEFAULT_OUTPUT_CAP,
    NO_BLOCK_OVERRIDES,
    BlockOverrides,
    CallOutcome,
    CallRequest,
    StateOverrides,
    revert_message,
)
from fastevm.tracing import Spool, TraceRequest

Json = dict[str, Any]

OUTCOMES: Final = TraceRequest(make=lambda *given: tracing.OutcomeTracer(*given))
TRACES_TIME: Final = 60.0  # seconds for all traces of one request
ALL: Final = -1  # transaction index for the state after the whole block


class CallBundle(Struct, frozen=True):
    """Calls with the same block overrides."""

    calls: tuple[CallRequest, ...] = ()
    block_overrides: BlockOverrides = NO_BLOCK_OVERRIDES


class StateContext(Struct, frozen=True):
    """The state before the first call: after a block, or after some of its transactions."""

    block: BlockId = LATEST_BLOCK
    index: int | None = None


def decode_bundles(value: Any, form: Form = GETH) -> list[CallBundle]:
    """Decode the bundles of eth_callMany."""
    if not isinstance(value, list):
        raise object_fault(value, "[]Bundle")
    bundles = [_bundle(item, form) for item in value]
    if sum(len(bundle.calls) for bundle in bundles) > TRACED_CALLS:
        raise DecodeError(f"more than {TRACED_CALLS} calls")
    return bundles


def _bundle(value: Any, form: Form) -> CallBundle:
    if not isinstance(value, dict):
        raise object_fault(value, "Bundle")
    calls, overrides = value.get("transactions"), value.get("blockOverride")
    if not isinstance(calls, list):
        raise object_fault(calls, "[]TransactionArgs", "Bundle.transactions")
    return CallBundle(tuple(map(decode_call, calls)), decode_block_overrides(overrides, form))


def decode_state_context(value: Any) -> StateContext:
    """Decode the state context of eth_callMany."""
    if not isinstance(value, dict):
        raise object_fault(value, "StateContext")
    block, index = value.get("blockNumber"), value.get("transactionIndex")
    if index is not None and (isinstance(index, bool) or not isinstance(index, int)):
        raise object_fault(index, "int", "StateContext.transactionIndex")
    if index is not None and index < ALL:
        raise DecodeError("StateContext.transactionIndex: less than -1")
    return StateContext(
        LATEST_BLOCK if block is None else decode_block(block), None if index == ALL else index
    )


BUNDLES: Final = Param(decode_bundles, strict=partial(decode_bundles, form=STRICT))
STATE_CONTEXT: Final = Param(decode_state_context, optional=True, default=StateContext())


@method("eth_callMany", BUNDLES, STATE_CONTEXT, STATE_OVERRIDES, run_on=RunOn.WORKER)
@long_running
def call_many(
    context: Context,
    bundles: list[CallBundle],
    state: StateContext,
    overrides: StateOverrides,
) -> list[list[Json]]:
    """Return the output or the error of each call, by bundle.

    A failed call changes nothing, and the next call runs. If a call is invalid, the whole request
    fails. All calls share the time limit of a call and the gas limit of a request, and return at
    most 10 MB together.
    """
    limits = context.limits
    found = iter(_traced(context, bundles, state, overrides, OUTCOMES, limits.call_time))
    return [[outcome_json(next(found).outcome) for _ in bundle.calls] for bundle in bundles]


def outcome_json(outcome: CallOutcome) -> Json:
    """Return the output of a call, or the text of its failure."""
    if outcome.success:
        return {"value": hex_bytes(outcome.output)}
    return {"error": failure_of(outcome)}


def failure_of(outcome: CallOutcome) -> str:
    """Return why a call failed."""
    return revert_message(outcome.output) if outcome.reverted else str(outcome.error)


@method(
    "debug_traceCallMany",
    BUNDLES,
    STATE_CONTEXT,
    CALL_CONFIG,
    run_on=RunOn.WORKER,
)
@long_running
def trace_many(
    context: Context, bundles: list[CallBundle], state: StateContext, config: CallTraceConfig
) -> Answer:
    """Return the trace of each call, by bundle."""
    found = iter(_traced(context, bundles, state, config.state_overrides, config.request))
    return list_of(list_of(next(found) for _ in bundle.calls) for bundle in bundles)


def _traced(
    context: Context,
    bundles: Sequence[CallBundle],
    state: StateContext,
    overrides: StateOverrides,
    request: TraceRequest,
    timeout: float = TRACES_TIME,
) -> list[Any]:
    if state.index is None:
        view, before = context.view(state.block).state(), None
    else:
        block = view_of(context, state.block)
        transactions = block.block.transactions
        if state.index > len(transactions):
            text = f"transaction index {state.index} out of range: {len(transactions)} transactions"
            raise RpcError("server_error", text)
        view, before = base_of(block), transactions[: state.index]
    return tracing.trace_calls(
        view,
        [
            tracing.TracedCall(call, request, bundle.block_overrides)
            for bundle in bundles
            for call in bundle.calls
        ],
        before=before,
        state_overrides=overrides,
        gas_cap=context.limits.call_gas,
        gas_budget=context.limits.request_gas,
        timeout=timeout,
        spool=Spool(context.trace_room),
        shows_base_fee=context.dialect.free_calls_see_base_fee,
        output_cap=DEFAULT_OUTPUT_CAP,
    )
