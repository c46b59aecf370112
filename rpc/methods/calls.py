"""eth_call and eth_estimateGas: one message call on any state, with overrides."""

from collections.abc import Mapping

from fastevm.errors import InvalidTransaction
from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.params import INTERFACE_BLOCK, NEXT_BLOCK
from fastevm.rpc.dispatch.registry import Param, Place, method
from fastevm.rpc.errors import RpcError
from fastevm.rpc.selectors import Selector
from fastevm.simulate import (
    NO_BLOCK_OVERRIDES,
    AccountOverride,
    BlockOverrides,
    CallRequest,
    CallResult,
    SimulationError,
    revert_message,
)
from fastevm.wire.simulate_values import decode_block_overrides, decode_call, decode_state_overrides
from fastevm.wire.text.hex import hex_bytes, quantity

CALL = Param(decode_call)
STATE_OVERRIDES = Param(decode_state_overrides, optional=True, default={})
BLOCK_OVERRIDES = Param(decode_block_overrides, optional=True, default=NO_BLOCK_OVERRIDES)


@method("eth_call", CALL, INTERFACE_BLOCK, STATE_OVERRIDES, BLOCK_OVERRIDES, place=Place.LIGHT)
def call(
    context: Context,
    request: CallRequest,
    block: Selector,
    state_overrides: Mapping[bytes, AccountOverride],
    block_overrides: BlockOverrides,
) -> str:
    """Return the output of a call. Under ``pending`` the block context is the pending block's own.

    Without ``gas`` the call gets the node's gas cap. A revert is an error with the revert data.
    """
    if context.dialect.call_needs_target and request.to is None:
        raise RpcError("invalid_argument", position=0, fault="missing field to")
    try:
        result = context.simulator.call(
            context.view(block).state(),
            request,
            state_overrides=state_overrides,
            block_overrides=block_overrides,
            gas_cap=context.limits.call_gas,
            timeout=context.limits.call_time,
        )
    except (InvalidTransaction, SimulationError) as error:
        raise RpcError("call", error.message) from error
    if not result.success:
        raise failed_call(result)
    return hex_bytes(result.output)


@method(
    "eth_estimateGas",
    CALL,
    NEXT_BLOCK,
    STATE_OVERRIDES,
    BLOCK_OVERRIDES,
    place=Place.LIGHT,
)
def estimate_gas(
    context: Context,
    request: CallRequest,
    block: Selector,
    state_overrides: Mapping[bytes, AccountOverride],
    block_overrides: BlockOverrides,
) -> str:
    """Return a gas limit with which the transaction succeeds, at most 1.5 % above the least one."""
    try:
        result = context.simulator.estimate_gas(
            context.view(block).state(),
            request,
            state_overrides=state_overrides,
            block_overrides=block_overrides,
            gas_cap=context.limits.call_gas,
            timeout=context.limits.call_time,
        )
    except (InvalidTransaction, SimulationError) as error:
        raise RpcError("call", error.message) from error
    if isinstance(result, CallResult):
        raise failed_call(result)
    return quantity(result)


def failed_call(result: CallResult) -> RpcError:
    """Return the error of a call that ran and failed."""
    if result.reverted:
        return RpcError("reverted", revert_message(result.output), data=hex_bytes(result.output))
    return RpcError("halted", result.error)
