"""Traces of calls on any state, one or several that build on each other."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from fastevm.evm import EVM
from fastevm.execution.transaction import Transaction
from fastevm.simulate.calls import Attempt, asked_ahead
from fastevm.simulate.engine.runner import transaction_of
from fastevm.simulate.values import (
    DEFAULT_GAS_CAP,
    BlockOverrides,
    CallRequest,
    StateOverrides,
    StateView,
)
from fastevm.simulate.views import view_of
from fastevm.state.layer import Layer
from fastevm.tracing.blocks import CALLS_ONLY, Budget, on_known_state, replay, traced
from fastevm.tracing.runner import TracedRunner
from fastevm.tracing.spool import Spool
from fastevm.tracing.tracers import tracer_for
from fastevm.tracing.values import TraceRequest

# What is run, a call or the bytes of a signed transaction, and how it is traced.
TracedCall = tuple[CallRequest | bytes, TraceRequest]


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
) -> Any:
    """A trace of a call on ``view``; see `fastevm.simulate.calls.call` for its arguments.

    ``view``: also an EVM, in its own block, or a state alone. ``request``: default the call tree.
    ``before``: transactions that run first; ``view`` is then the state under their block. ``spool``
    as for ``trace_block``.
    """
    (trace,) = trace_calls(
        view if isinstance(view, StateView) else view_of(view),
        [(call, request)],
        before=before,
        state_overrides=state_overrides,
        block_overrides=block_overrides,
        gas_cap=gas_cap,
        spool=spool,
    )
    return trace


def trace_calls(
    view: StateView,
    calls: Sequence[TracedCall],
    *,
    before: Sequence[Transaction] | None = None,
    state_overrides: StateOverrides | None = None,
    block_overrides: BlockOverrides | None = None,
    gas_cap: int = DEFAULT_GAS_CAP,
    spool: Spool | None = None,
) -> list[Any]:
    """A trace of each call; each runs on the state that the one before it left.

    Calls as for ``trace_call``; a transaction keeps every rule. ``state_overrides`` are made once,
    before the first call. TracingError for a call that cannot run, TransactionDecodeError for bytes
    that are no transaction: there are no traces then.
    """

    def run(forced: TraceRequest | None, spool: Spool | None) -> list[Any]:
        requests = [forced or request for _, request in calls]
        for request in requests:
            tracer_for(request, 0)  # raises for an unknown name before anything runs
        budget = Budget(requests, spool)
        runner = _base(view, before, budget)
        traces, overrides = [], state_overrides or {}
        for (call, _), request in zip(calls, requests, strict=True):
            if isinstance(call, bytes):
                runner = _opened(replace(view, layer=runner.snapshot()))
                traces.append(traced(runner, Transaction.decode(call), request, budget))
                continue
            attempt = Attempt(view, call, overrides, block_overrides or BlockOverrides())
            runner = _in_environment(attempt, runner)
            runner.override(attempt.plan)
            overrides = {}
            transaction = _transaction(attempt, call, runner, gas_cap)
            traces.append(traced(runner, transaction, request, budget, as_call=True))
        return traces

    requests = [call for call, _ in calls if isinstance(call, CallRequest)]
    return on_known_state(view, run, None, spool, chain.from_iterable(map(asked_ahead, requests)))


def _base(view: StateView, before: Sequence[Transaction] | None, budget: Budget) -> TracedRunner:
    """A runner on the state on which the first call runs."""
    if before is None:
        return _opened(view)
    runner = TracedRunner()
    replay(runner, view, before, budget)
    return runner


def _transaction(
    attempt: Attempt, call: CallRequest, runner: TracedRunner, gas_cap: int
) -> Transaction:
    gas = gas_cap or attempt.environment.gas_limit if call.gas is None else call.gas
    gas = min(gas, gas_cap) if gas_cap else gas
    return transaction_of(call, gas, runner.nonce(call.sender), attempt.view)


def _opened(view: StateView) -> TracedRunner:
    runner = TracedRunner()
    runner.open(view)
    return runner


def _in_environment(attempt: Attempt, runner: TracedRunner) -> TracedRunner:
    """A runner on the state of another one, in the environment that the call sees."""
    opened = TracedRunner()
    view = replace(attempt.view, layer=runner.snapshot(), schedule=attempt.schedule)
    opened.open(view, environment=attempt.environment)
    return opened
