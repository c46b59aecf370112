"""Runs one message call on a state."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from fastevm.core.primitives.replace import replace
from fastevm.core.simulation.deadline import out_of_time, thread_owned, time_limit
from fastevm.core.simulation.environment import environment_of, refuse_block_content
from fastevm.core.simulation.plan import Plan
from fastevm.core.simulation.refusals import supplied
from fastevm.core.simulation.runner import Runner
from fastevm.core.simulation.values import (
    DEFAULT_GAS_CAP,
    DEFAULT_TIMEOUT,
    NO_BLOCK_OVERRIDES,
    AccountOverride,
    BlockOverrides,
    CallOutcome,
    CallRequest,
    CallResult,
    SimulationError,
    StateView,
)
from fastevm.core.state.remote import RemoteState
from fastevm.core.state.source import call_object
from fastevm.errors import InvalidTransaction
from fastevm.simulate.l1_charge import l1_gas_of_call, pays_for_l1
from fastevm.simulate.simple_call import SimpleCaller, SimpleOutcome, is_simple


def thread_runner() -> Runner:
    """Returns the runner of the calling thread."""
    return thread_owned(Runner)


class Attempt:
    """A call that may run several times, with the values that are the same in all runs."""

    def __init__(
        self,
        view: StateView,
        request: CallRequest,
        state_overrides: Mapping[bytes, AccountOverride],
        block_overrides: BlockOverrides,
        *,
        shows_base_fee: bool = False,
    ) -> None:
        refuse_block_content(block_overrides)
        self.plan = Plan.of_call(request, state_overrides)
        self.plan.check_call(view.config.chain_id)
        self.schedule = schedule_of(view, block_overrides)
        self.view, self.request = replace(view, schedule=self.schedule), request
        self.state_overrides = state_overrides
        self.environment = environment_of(
            view.header,
            self.schedule,
            view.config.chain_id,
            block_overrides,
            free_gas=not (
                shows_base_fee
                or request.gas_price
                or request.max_fee_per_gas
                or request.max_priority_fee_per_gas
            ),
            free_blobs=not request.max_fee_per_blob_gas,
        )

    @property
    def gas_limit(self) -> int:
        """Returns the gas limit of the block."""
        return self.environment.gas_limit

    def funds(self) -> int:
        """Returns the balance of the sender in wei."""
        return self.open().balance(self.request.sender)

    def open(self) -> Runner:
        """Returns a runner on the view's state with the overrides applied."""
        runner = thread_runner()
        runner.open(self.view, environment=self.environment)
        runner.override(self.plan)
        return runner

    def run(self, gas: int, timeout: float) -> CallOutcome:
        """Runs the call with ``gas``. Raises InvalidTransaction, or SimulationError on timeout."""
        runner = self.open()
        return simulated(runner, self.plan, gas, timeout)


class SimpleAttempt:
    """A call without lists and overrides. It runs faster and has the interface of `Attempt`."""

    state_overrides: Mapping[bytes, AccountOverride] = MappingProxyType({})

    def __init__(
        self, view: StateView, request: CallRequest, *, shows_base_fee: bool = False
    ) -> None:
        self.view, self.request, self.schedule = view, request, view.schedule
        self.caller = thread_owned(SimpleCaller)
        self.caller.open(view, request, shows_base_fee)

    @property
    def gas_limit(self) -> int:
        """Returns the gas limit of the block."""
        return int(self.view.header.gas_limit)

    def funds(self) -> int:
        """Returns the balance of the sender in wei."""
        return self.caller.balance(self.request.sender)

    def run(self, gas: int, timeout: float) -> SimpleOutcome:
        """Runs the call with ``gas``, see :meth:`Attempt.run`."""
        return self.caller.run_limited(gas, timeout)


AnyAttempt = Attempt | SimpleAttempt


def attempt_of(
    view: StateView,
    request: CallRequest,
    state_overrides: Mapping[bytes, AccountOverride] | None,
    block_overrides: BlockOverrides | None,
    shows_base_fee: bool = False,
) -> AnyAttempt:
    """Returns a `SimpleAttempt` if it gives the same result as an `Attempt`, else an `Attempt`."""
    unchanged = block_overrides is None or block_overrides is NO_BLOCK_OVERRIDES
    if unchanged and not state_overrides and is_simple(request):
        return SimpleAttempt(view, request, shows_base_fee=shows_base_fee)
    return Attempt(
        view,
        request,
        state_overrides or {},
        block_overrides or NO_BLOCK_OVERRIDES,
        shows_base_fee=shows_base_fee,
    )


def call(
    view: StateView,
    request: CallRequest,
    *,
    state_overrides: Mapping[bytes, AccountOverride] | None = None,
    block_overrides: BlockOverrides | None = None,
    gas_cap: int = DEFAULT_GAS_CAP,
    timeout: float = DEFAULT_TIMEOUT,
    shows_base_fee: bool = False,
) -> CallResult:
    """Runs one call on ``view``, which does not change.

    ``gas_cap`` is the limit and the default of the call's gas (0: no limit). ``shows_base_fee``:
    whether BASEFEE in a call without a gas price returns the block's base fee; otherwise it returns
    0.

    Nonces and the sender's code are not checked. Fees are checked only if the call has a gas price.
    The balance must cover the value and any checked fees. On Arbitrum the call also pays gas for
    the L1 data fee, which the call's ``gas`` must cover.

    Raises InvalidTransaction for an invalid call, and SimulationError for invalid overrides and
    after ``timeout`` seconds. A revert or halt is a result.
    """
    remote: RemoteState | None = view.layer.remote_state
    if remote is None:
        return _call(
            view, request, state_overrides, block_overrides, gas_cap, timeout, shows_base_fee
        )
    arguments = (
        view, request, state_overrides, block_overrides, gas_cap, timeout, shows_base_fee,
    )  # fmt: skip
    return remote.run_resolved(partial(_call, *arguments), asked_ahead(request))


def call_plan(
    view: StateView,
    plan: Plan,
    *,
    gas_cap: int = DEFAULT_GAS_CAP,
    timeout: float = DEFAULT_TIMEOUT,
    shows_base_fee: bool = False,
) -> SimpleOutcome | CallOutcome:
    """Runs the first call of a plan with the overrides of the plan's first block, see `call`."""
    run: Callable[..., SimpleOutcome | CallOutcome] = _call_overridden
    if not plan.has_overrides:
        run = thread_owned(SimpleCaller).call
    remote: RemoteState | None = view.layer.remote_state
    if remote is None:
        return run(view, plan, gas_cap, timeout, shows_base_fee)
    return remote.run_resolved(
        partial(run, view, plan, gas_cap, timeout, shows_base_fee), plan.call_objects()
    )


def _call_overridden(
    view: StateView, plan: Plan, gas_cap: int, timeout: float, shows_base_fee: bool
) -> CallOutcome:
    plan.check_call(view.config.chain_id)
    environment = environment_of(
        view.header,
        view.schedule,
        view.config.chain_id,
        NO_BLOCK_OVERRIDES,
        free_gas=plan.is_free and not shows_base_fee,
        free_blobs=True,
    )
    gas = plan.call_gas(gas_cap, environment.gas_limit)
    runner = thread_runner()
    runner.open(view, environment=environment)
    runner.override(plan)
    return simulated(runner, plan, gas, timeout)


def simulated(runner: Runner, plan: Plan, gas: int, timeout: float) -> CallOutcome:
    """Returns the result of the plan's first call, which runs at most ``timeout`` seconds.

    Raises the errors that nodes return.
    """
    with time_limit(runner, timeout):
        try:
            return runner.simulate(plan, gas)
        except InvalidTransaction as error:
            raise supplied(error, gas) from None
        except SimulationError:
            raise out_of_time(timeout) from None


def asked_ahead(request: CallRequest) -> tuple[Mapping[str, Any], ...]:
    """Returns the call as JSON, for a remote state's source, which prefetches what the call
    reads.
    """
    return (call_object(request.sender, request.to, request.data, request.value),)


def _call(
    view: StateView,
    request: CallRequest,
    state_overrides: Mapping[bytes, AccountOverride] | None,
    block_overrides: BlockOverrides | None,
    gas_cap: int,
    timeout: float,
    shows_base_fee: bool,
) -> CallResult:
    attempt = attempt_of(view, request, state_overrides, block_overrides, shows_base_fee)
    gas = gas_cap or attempt.gas_limit if request.gas is None else request.gas
    charged = l1_gas_of_call(attempt.view, request) if pays_for_l1(view, request) else 0
    if charged and request.gas is not None:
        gas -= charged
        if gas < 0:
            text = f"intrinsic gas too low: have {request.gas}, the data on L1 costs {charged}"
            raise InvalidTransaction("intrinsic_gas", text, have=request.gas)
    outcome = attempt.run(min(gas, gas_cap) if gas_cap else gas, timeout)
    return CallResult(
        success=outcome.success,
        output=outcome.output,
        gas_used=outcome.gas_used + charged,
        error=outcome.error,
        reverted=outcome.reverted,
    )


def schedule_of(view: StateView, overrides: BlockOverrides) -> Any:
    """Returns the rules of the view's block, with the overridden time and number."""
    if overrides.number is None and overrides.time is None:
        return view.schedule
    header = view.header
    number = header.number if overrides.number is None else overrides.number
    timestamp = header.timestamp if overrides.time is None else overrides.time
    merged = bool(view.schedule.parameters["proof_of_stake"])
    return view.config.activations.at(number, timestamp, after_merge=merged)
