"""Traces of calls on any state: one call, or several that build on each other."""

from collections.abc import Sequence
from itertools import chain
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import BlockEnvironment
from fastevm.core.primitives.replace import replace
from fastevm.core.simulation.runner import transaction_of
from fastevm.core.simulation.values import (
    DEFAULT_GAS_CAP,
    NO_BLOCK_OVERRIDES,
    BlockOverrides,
    CallRequest,
    StateOverrides,
    StateView,
)
from fastevm.core.state.layer import Layer
from fastevm.evm.machine import EVM
from fastevm.simulate.calls import Attempt, asked_ahead
from fastevm.simulate.views import view_of
from fastevm.tracing.blocks import (
    BLOCK_TIME_LIMIT,
    CALLS_ONLY,
    Budget,
    on_known_state,
    replay,
    traced,
)
from fastevm.tracing.runner import TracedRunner
from fastevm.tracing.spool import Spool
from fastevm.tracing.tracer import Finished
from fastevm.tracing.tracers import tracer_for
from fastevm.tracing.values import TraceRequest, TracingError

PRICED: Final = CallRequest(gas_price=1, max_fee_per_blob_gas=1)


class TracedCall(NamedTuple):
    """A call or a raw signed transaction, the trace request, and block overrides.

    ``state_overrides`` are applied before the call.
    """

    call: CallRequest | bytes
    request: TraceRequest
    block_overrides: BlockOverrides = NO_BLOCK_OVERRIDES
    state_overrides: StateOverrides = MappingProxyType({})


def trace_call(
    view: StateView | EVM | Layer,
    call: CallRequest,
    request: TraceRequest = CALLS_ONLY,
    *,
    before: Sequence[Transaction] | None = None,
    state_overrides: StateOverrides | None = None,
    block_overrides: BlockOverrides | None = None,
    gas_cap: int = DEFAULT_GAS_CAP,
    spool: Spool | None = None,
    shows_base_fee: bool = False,
) -> Any:
    """Returns a trace of a call on ``view``; see `fastevm.simulate.calls.call` for its arguments.

    - ``view``: a state view, a state, or an EVM with its own block
    - ``request``: by default the call tree
    - ``before``: transactions to execute before the call; ``view`` is then the state before their
      block
    - ``spool``: see ``trace_block``
    """
    (trace,) = trace_calls(
        view if isinstance(view, StateView) else view_of(view),
        [TracedCall(call, request, block_overrides or NO_BLOCK_OVERRIDES)],
        before=before,
        state_overrides=state_overrides,
        gas_cap=gas_cap,
        spool=spool,
        shows_base_fee=shows_base_fee,
    )
    return trace


def state_inside(view: StateView, transactions: Sequence[Transaction]) -> Layer:
    """Returns the state after the first transactions of a block.

    ``view``: the state before the block.
    """

    def run(_: TraceRequest | None, spool: Spool | None) -> Layer:
        return _base(view, transactions, Budget([CALLS_ONLY], spool)).snapshot()

    return on_known_state(view, run, None, None)


def trace_calls(
    view: StateView,
    calls: Sequence[TracedCall],
    *,
    before: Sequence[Transaction] | None = None,
    state_overrides: StateOverrides | None = None,
    gas_cap: int = DEFAULT_GAS_CAP,
    gas_budget: int | None = None,
    timeout: float = BLOCK_TIME_LIMIT,
    spool: Spool | None = None,
    shows_base_fee: bool = False,
    output_cap: int | None = None,
) -> list[Any]:
    """Returns a trace of each call; each call runs on the state after the previous one.

    Calls: see ``trace_call``; a raw transaction must be valid.

    - ``state_overrides``: applied once, before the first call
    - ``gas_budget`` and ``timeout`` (seconds): apply to all calls together
    - ``shows_base_fee``: see `fastevm.simulate.calls.call`
    - ``output_cap``: maximum size in bytes of all outputs of an `OutcomeTracer` together; None: no
      limit

    Raises TracingError if a call cannot run or a budget is exceeded, and TransactionDecodeError for
    invalid bytes. No traces are returned in these cases.
    """

    def run(forced: TraceRequest | None, spool: Spool | None) -> list[Any]:
        requests = [forced or each.request for each in calls]
        for request in requests:
            tracer_for(request, 0)  # fails early for an unknown name
        budget = Budget(requests, spool, timeout=timeout, gas=gas_budget)
        runner = _base(view, before, budget)
        traces, overrides = [], state_overrides or {}
        returned = 0
        for each, request in zip(calls, requests, strict=True):
            opened = _Opened(
                view, runner, each, {**overrides, **each.state_overrides}, shows_base_fee
            )
            runner, overrides = opened.runner, {}
            transaction = opened.transaction(gas_cap)
            as_call = isinstance(each.call, CallRequest)
            traces.append(traced(runner, transaction, request, budget, as_call=as_call))
            if output_cap is not None and isinstance(traces[-1], Finished):
                returned += len(traces[-1].outcome.output)
                if returned > output_cap:
                    raise TracingError(f"the calls return more than {output_cap} bytes")
        return traces

    requests = [each.call for each in calls if isinstance(each.call, CallRequest)]
    return on_known_state(view, run, None, spool, chain.from_iterable(map(asked_ahead, requests)))


class _Opened:
    """A runner on the state of another runner, in the block environment of the call."""

    def __init__(
        self,
        view: StateView,
        below: TracedRunner,
        wanted: TracedCall,
        overrides: StateOverrides,
        shows_base_fee: bool,
    ) -> None:
        self.call = wanted.call
        # A transaction keeps the base fee of the block, like a call with a gas price.
        request = self.call if isinstance(self.call, CallRequest) else PRICED
        attempt = Attempt(
            view, request, overrides, wanted.block_overrides, shows_base_fee=shows_base_fee
        )
        self.view = replace(attempt.view, layer=below.snapshot(), schedule=attempt.schedule)
        self.gas_limit = attempt.environment.gas_limit
        self.runner = _opened(self.view, attempt.environment)
        self.runner.override(attempt.plan)

    def transaction(self, gas_cap: int) -> Transaction:
        """Returns the transaction to execute."""
        call = self.call
        if isinstance(call, bytes):
            return Transaction.decode(call)
        gas = gas_cap or self.gas_limit if call.gas is None else call.gas
        gas = min(gas, gas_cap) if gas_cap else gas
        return transaction_of(call, gas, self.runner.nonce(call.sender), self.view)


def _base(view: StateView, before: Sequence[Transaction] | None, budget: Budget) -> TracedRunner:
    """Returns a runner on the state before the first call."""
    if before is None:
        return _opened(view)
    runner = TracedRunner()
    replay(runner, view, before, budget)
    return runner


def _opened(view: StateView, environment: BlockEnvironment | None = None) -> TracedRunner:
    runner = TracedRunner()
    runner.open(view, environment=environment)
    return runner
