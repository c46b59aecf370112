"""eth_simulateV1: several blocks of calls on top of any state."""

from dataclasses import replace
from typing import Any

from msgspec import Raw

from fastevm.errors import InvalidTransaction, ResourceLimitError
from fastevm.simulate import (
    DEFAULT_OUTPUT_CAP,
    SimulateOptions,
    SimulatePayload,
    SimulationError,
    extensions_from,
)
from rpc.calls import decode_payload
from rpc.context import Context
from rpc.errors import RpcError, family_reason
from rpc.params import INTERFACE_BLOCK
from rpc.quantity import DecodeError
from rpc.registry import Param, Place, method
from rpc.selectors import Selector
from rpc.simulated import simulated_json
from rpc.workers import heavy

MILLISECONDS = 1000


def as_it_is(value: Any) -> Any:
    """Leave the payload for the worker thread: decoding ten thousand calls takes its time."""
    return value


def decoded(value: Any) -> SimulatePayload:
    """Decode the payload; an error of the first argument where it cannot be."""
    try:
        payload = decode_payload(value)
    except DecodeError as fault:
        raise RpcError("invalid_argument", position=0, fault=fault) from None
    return replace(payload, **extensions_from(value))


@method("eth_simulateV1", Param(as_it_is), INTERFACE_BLOCK, place=Place.WORKER)
@heavy
def simulate(context: Context, given: Any, block: Selector) -> list[Raw]:
    """Return one block object with its call results for each simulated block, fillers included.

    ``pending`` is the base state once, not an overlay of every simulated block. Optional members of
    the payload beyond the standard, each false by default, add a member to every call:
    ``returnStateDiff`` (``stateDiff``: balance, nonce, code, storage before and after),
    ``returnAssetChanges`` (``assetChanges``: ether, tokens, approvals, code, delegations),
    ``returnAccessList`` (``accessList``: what the call had warmed) and ``returnCallTree``
    (``callTree``: frames with decoded revert reasons).
    """
    payload = decoded(given)
    if not payload.blocks:
        raise RpcError("simulate.empty_input")
    view = context.view(block).state()
    try:
        blocks = context.simulator.simulate_v1(view, payload, _options(context))
    except SimulationError as error:
        if error.reason == "output_cap":
            raise RpcError("response_too_large") from error
        raise RpcError(family_reason("simulate", error.reason), error.message) from error
    except InvalidTransaction as error:
        raise RpcError(family_reason("simulate", error.code), error.message) from error
    except ResourceLimitError as error:
        raise RpcError("simulate", str(error)) from error
    full = payload.full_transactions
    return [simulated_json(context, simulated, full=full) for simulated in blocks]


def _options(context: Context) -> SimulateOptions:
    dialect, limits = context.dialect, context.limits
    spacing = dialect.simulated_block_spacing
    if spacing is None:
        spacing = max(context.node.config.block_time_ms // MILLISECONDS, 1)
    return SimulateOptions(
        zero_state_root=dialect.simulate_zero_state_root,
        block_spacing=spacing,
        gas_cap=limits.call_gas,
        timeout=limits.call_time,
        output_cap=DEFAULT_OUTPUT_CAP,
    )
