"""eth_simulateV1: simulates blocks of calls on any state."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from msgspec import Raw

from fastevm.core.primitives.replace import replace
from fastevm.errors import InvalidTransaction, ResourceLimitError
from fastevm.rpc.block_id import BlockId
from fastevm.rpc.context import Context
from fastevm.rpc.dialect import Dialect
from fastevm.rpc.dispatch.envelope import parse_params
from fastevm.rpc.dispatch.lenient_numbers import decoded
from fastevm.rpc.dispatch.params import INTERFACE_BLOCK
from fastevm.rpc.dispatch.registry import METHODS, Param, RunOn, method
from fastevm.rpc.dispatch.workers import long_running
from fastevm.rpc.errors import REASONS, RpcError, family_reason
from fastevm.rpc_types.quantity import DecodeError
from fastevm.rpc_types.simulate_request import decode_payload
from fastevm.rpc_types.value_forms import GETH, STRICT
from fastevm.simulate import (
    DEFAULT_OUTPUT_CAP,
    ErrorForm,
    Plan,
    SimulateOptions,
    SimulationError,
    StateView,
)

MILLISECONDS: Final = 1000
ERROR_FORM: Final = ErrorForm(
    as_text=False,
    revert_code=REASONS["simulated_revert"].geth.code,
    halt_code=REASONS["simulated_halt"].geth.code,
)


def as_it_is(value: Any) -> Any:
    """Returns the payload unchanged, because the handler reads it into a plan."""
    return value


def planned(value: Any, dialect: Dialect) -> Plan:
    """Read the payload into a plan. Raises RpcError if the payload is invalid."""
    form = STRICT if dialect.refuses_unknown_overrides else GETH
    try:
        payload = decoded(partial(decode_payload, form=form), value, dialect)
    except DecodeError as fault:
        raise RpcError("invalid_argument", position=0, fault=fault) from None
    return Plan.of(payload)


def simulate_directly(context: Context, params: bytes, head: bytes) -> bytes | None:
    """Answer from the text of the params. Returns None unless they have the usual form."""
    found = context.simulator.read_request(params)
    if found is None:
        return None
    plan, others = found
    given, *more = METHODS["eth_simulateV1"].bind([plan, *parse_params(others)], context.dialect)
    return answered(context, given, context.view(*more).state(), head)


def answered(context: Context, plan: Plan, view: StateView, head: bytes = b"") -> bytes:
    """Run a plan. Returns ``head`` and the result as JSON text."""
    form = replace(ERROR_FORM, as_text=context.dialect.simulate_error_as_text)
    with refusals():
        return context.simulator.simulate_text(view, plan, _options(context), form, head)


@contextmanager
def refusals() -> Iterator[None]:
    """Convert exceptions about a whole request to RpcError."""
    try:
        yield
    except SimulationError as error:
        if error.reason == "output_cap":
            raise RpcError("response_too_large") from error
        raise RpcError(family_reason("simulate", error.reason), error.message) from error
    except InvalidTransaction as error:
        raise RpcError(family_reason("simulate", error.code), error.message) from error
    except ResourceLimitError as error:
        raise RpcError("simulate", str(error)) from error


@method(
    "eth_simulateV1",
    Param(as_it_is),
    INTERFACE_BLOCK,
    run_on=RunOn.LIGHT,
    direct=simulate_directly,
)
@long_running
def simulate(context: Context, given: Any, block: BlockId) -> Raw:
    """Return a block object with call results for each simulated block, gap blocks included.

    ``pending`` is the base state and does not change during the simulation. Non-standard optional
    members of the payload (default false) add a member to every call: ``returnStateDiff``
    (``stateDiff``: balance, nonce, code, storage before and after), ``returnAssetChanges``
    (``assetChanges``: ether, tokens, approvals, code, delegations), ``returnAccessList``
    (``accessList``: accounts and slots that the call warmed) and ``returnCallTree`` (``callTree``:
    frames with decoded revert reasons).
    """
    plan = planned(given, context.dialect)
    if plan.is_empty:
        raise RpcError("simulate.empty_input")
    return Raw(answered(context, plan, context.view(block).state()))


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
