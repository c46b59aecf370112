"""eth_call and eth_estimateGas run one message call on any state, with overrides."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from fastevm.core.primitives.hex import hex_bytes, quantity
from fastevm.core.primitives.replace import replace
from fastevm.errors import InvalidTransaction
from fastevm.rpc.anvil_errors import halt_words, revert_words
from fastevm.rpc.block_id import BlockId, decode_block
from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.params import INTERFACE_BLOCK, NEXT_BLOCK
from fastevm.rpc.dispatch.registry import Param, RunOn, method
from fastevm.rpc.errors import RpcError, family_reason
from fastevm.rpc.methods.node_interface import answer as answer_of_node
from fastevm.rpc.methods.node_interface import is_node_interface
from fastevm.rpc_types.call_object import decode_call
from fastevm.rpc_types.overrides import decode_block_overrides, decode_state_overrides
from fastevm.rpc_types.quantity import DecodeError, object_fault
from fastevm.rpc_types.value_forms import STRICT
from fastevm.simulate import (
    NO_BLOCK_OVERRIDES,
    AccountOverride,
    BlockOverrides,
    CallOutcome,
    CallRequest,
    CallResult,
    SimpleOutcome,
    SimulationError,
    StateView,
    is_transfer,
    revert_message,
)

MAX_BALANCE = 2**256 - 1  # wei
Ended = CallResult | CallOutcome | SimpleOutcome
CALL = Param(decode_call)
STATE_OVERRIDES = Param(
    decode_state_overrides,
    optional=True,
    default={},
    strict=partial(decode_state_overrides, form=STRICT),
)
BLOCK_OVERRIDES = Param(
    decode_block_overrides,
    optional=True,
    default=NO_BLOCK_OVERRIDES,
    strict=partial(decode_block_overrides, form=STRICT),
)


def with_one_kind_of_fees(context: Context, request: CallRequest) -> CallRequest:
    """Remove the gas price next to EIP-1559 fees, and a priority fee without a fee cap.

    Does so only if the dialect has ``newer_fees_count``, because viem sends call objects with both
    kinds of fees.
    """
    if not context.dialect.newer_fees_count:
        return request
    cap, tip = request.max_fee_per_gas, request.max_priority_fee_per_gas
    if cap is None and tip is None:
        return request
    if request.gas_price is not None:
        return replace(request, gas_price=None)
    return replace(request, max_priority_fee_per_gas=None) if cap is None else request


def decode_estimate_options(value: Any) -> bool:
    """Decode the options of an estimate. Returns whether the L1 fee is requested."""
    if not isinstance(value, dict):
        raise object_fault(value, "estimate options")
    for name, wanted in value.items():
        if name != "l1Fee":
            raise DecodeError(f'unknown option "{name}": the only one is "l1Fee"')
        if not isinstance(wanted, bool):
            raise object_fault(wanted, "bool")
    return bool(value.get("l1Fee"))


def call_directly(context: Context, params: bytes, head: bytes) -> bytes | None:
    """Answer eth_call from the text of the params. Returns None unless they have the usual form."""
    found = context.simulator.read_call_params(params)
    if found is None:
        return None
    plan, asked = found
    if plan.has_fee_caps and context.dialect.newer_fees_count:
        return None
    try:
        block = decode_block(asked)
    except DecodeError:
        return None
    state = context.view(block).state()
    if state.schedule.parameters["arbos_version"]:  # NodeInterface, and gas for data on L1
        return None
    try:
        result = context.simulator.call_plan(
            state,
            plan,
            gas_cap=context.limits.call_gas,
            timeout=context.limits.call_time,
            shows_base_fee=context.dialect.free_calls_see_base_fee,
        )
    except (InvalidTransaction, SimulationError) as error:
        raise refused_call(error) from error
    if not result.success:
        raise failed_call(context, result)
    return b'%b"0x%b"}' % (head, result.output.hex().encode())


@method(
    "eth_call",
    CALL,
    INTERFACE_BLOCK,
    STATE_OVERRIDES,
    BLOCK_OVERRIDES,
    run_on=RunOn.LIGHT,
    direct=call_directly,
)
def call(
    context: Context,
    request: CallRequest,
    block: BlockId,
    state_overrides: Mapping[bytes, AccountOverride],
    block_overrides: BlockOverrides,
) -> str:
    """Return the output of a call. At ``pending`` it runs in the pending block's context.

    Without ``gas`` the call gets the node's gas cap. Without ``to`` the call is a creation and
    returns the deployed code. A revert raises RpcError with the revert data.
    """
    state = context.view(block).state()
    if is_node_interface(state, request):
        return hex_bytes(
            answer_of_node(
                context,
                state,
                request,
                lambda state, inner: estimated(
                    context, state, inner, state_overrides, block_overrides
                ),
            )
        )
    try:
        result = context.simulator.call(
            state,
            with_one_kind_of_fees(context, request),
            state_overrides=state_overrides,
            block_overrides=block_overrides,
            gas_cap=context.limits.call_gas,
            timeout=context.limits.call_time,
            shows_base_fee=context.dialect.free_calls_see_base_fee,
        )
    except (InvalidTransaction, SimulationError) as error:
        raise refused_call(error) from error
    if not result.success:
        raise failed_call(context, result)
    return hex_bytes(result.output)


@method(
    "eth_estimateGas",
    CALL,
    NEXT_BLOCK,
    STATE_OVERRIDES,
    BLOCK_OVERRIDES,
    Param(decode_estimate_options, optional=True, default=False),
    run_on=RunOn.LIGHT,
)
def estimate_gas(
    context: Context,
    request: CallRequest,
    block: BlockId,
    state_overrides: Mapping[bytes, AccountOverride],
    block_overrides: BlockOverrides,
    with_l1_fee: bool,
) -> str | dict[str, str]:
    """Return a gas limit with which the transaction succeeds, at most 1.5 % above the minimum.

    With the option ``{"l1Fee": true}``, returns an object with the member ``gas`` and, on a chain
    of the OP stack, the fees that the transaction pays besides gas.
    """
    view = context.view(block)
    gas = estimated(context, view.state(), request, state_overrides, block_overrides)
    if not with_l1_fee:
        return quantity(gas)
    return {"gas": quantity(gas), **view.l1_fees.estimate(request, gas)}


def estimated(
    context: Context,
    state: StateView,
    request: CallRequest,
    state_overrides: Mapping[bytes, AccountOverride],
    block_overrides: BlockOverrides,
) -> int:
    """Return a gas limit with which the transaction succeeds. Raises RpcError if there is none."""
    request = with_one_kind_of_fees(context, request)
    if (
        context.dialect.transfers_need_no_funds
        and not request.blob_versioned_hashes
        and is_transfer(state, request, state_overrides)
    ):
        state_overrides = with_funds(state, request, state_overrides, block_overrides)
    try:
        result = context.simulator.estimate_gas(
            state,
            request,
            state_overrides=state_overrides,
            block_overrides=block_overrides,
            gas_cap=context.limits.call_gas,
            timeout=context.limits.call_time,
            shows_base_fee=context.dialect.free_calls_see_base_fee,
        )
    except (InvalidTransaction, SimulationError) as error:
        raise refused_call(error) from error
    if isinstance(result, CallResult):
        raise failed_call(context, result)
    return result


def with_funds(
    state: StateView,
    request: CallRequest,
    state_overrides: Mapping[bytes, AccountOverride],
    block_overrides: BlockOverrides,
) -> Mapping[bytes, AccountOverride]:
    """Return the overrides plus a sender balance that covers value and gas."""
    limit = block_overrides.gas_limit
    gas = max(request.gas or 0, state.header.gas_limit if limit is None else limit)
    price = request.gas_price or request.max_fee_per_gas or 0
    funds = min(request.value + gas * price, MAX_BALANCE)
    sender = state_overrides.get(request.sender) or AccountOverride()
    return {**state_overrides, request.sender: replace(sender, balance=funds)}


def refused_call(error: InvalidTransaction | SimulationError) -> RpcError:
    """Return the RpcError of a call that did not run."""
    if isinstance(error, SimulationError):
        return RpcError("call", error.message)
    return RpcError(family_reason("call", error.code), error.message, have=error.have)


def failed_call(context: Context, result: Ended) -> RpcError:
    """Return the RpcError of a call that ran and failed."""
    as_anvil = context.dialect.errors_as_anvil
    if result.reverted:
        words = (revert_words if as_anvil else revert_message)(result.output)
        return RpcError("reverted", words, data=hex_bytes(result.output))
    error = result.error or ""
    data = "0x" if context.dialect.failed_send_is_error else None
    return RpcError("halted", halt_words(error) if as_anvil else error, data=data)
