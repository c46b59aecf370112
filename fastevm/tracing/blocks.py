"""Traces of transactions in their block, and of calls on any state."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from fastevm.errors import InvalidTransaction, ResourceLimitError
from fastevm.evm import EVM
from fastevm.execution.transaction import Transaction
from fastevm.simulate.calls import Attempt, asked_ahead
from fastevm.simulate.engine.deadline import WATCHDOG
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
from fastevm.state.remote import settled
from fastevm.tracing.flat import Place
from fastevm.tracing.runner import TracedRunner
from fastevm.tracing.spool import Spool
from fastevm.tracing.tracer import Finished, precompiles_of
from fastevm.tracing.tracers import CALL_TRACER, tracer_for
from fastevm.tracing.values import (
    CALLS_BYTES_LIMIT,
    TRACE_BYTES_LIMIT,
    TraceRequest,
    TracingError,
)

CALLS_ONLY: Final = TraceRequest(tracer=CALL_TRACER)
BLOCK_TIME_LIMIT: Final = 60.0  # seconds for all transactions of a block

T = TypeVar("T")


def trace_block(
    view: StateView,
    transactions: Sequence[Transaction],
    request: TraceRequest,
    *,
    spool: Spool | None = None,
) -> list[Any]:
    """A trace of each transaction of a block.

    ``view`` is the state under the block, with the block's own header and rules; a ``block_hash``
    of 32 zero bytes says that the block has none yet. With a ``spool`` long struct logs go there as
    they come, and stand in the trace as ``SpooledText``. Raises TracingError for an unknown tracer,
    a reached limit, and a transaction that is invalid in the block.
    """

    def run(request: TraceRequest, spool: Spool | None) -> list[Any]:
        runner = TracedRunner()
        runner.open(view)
        runner.begin()
        budget = Budget(request, spool)
        return [
            _traced(runner, transaction, request, budget, place=_place(view, transaction, index))
            for index, transaction in enumerate(transactions)
        ]

    return _on_known_state(view, run, request, spool)


def trace_transaction(
    view: StateView,
    transactions: Sequence[Transaction],
    index: int,
    request: TraceRequest,
    *,
    spool: Spool | None = None,
) -> Any:
    """A trace of transaction ``index`` of a block, after those before it; see ``trace_block``."""

    def run(request: TraceRequest, spool: Spool | None) -> Any:
        runner, budget = TracedRunner(), Budget(request, spool)
        tracer_for(request, 0)  # raises for an unknown name before anything runs
        _replay(runner, view, transactions[:index], budget)
        place = _place(view, transactions[index], index)
        return _traced(runner, transactions[index], request, budget, place=place)

    return _on_known_state(view, run, request, spool)


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
    view = view if isinstance(view, StateView) else view_of(view)

    def run(request: TraceRequest, spool: Spool | None) -> Any:
        tracer_for(request, 0)
        attempt = Attempt(view, call, state_overrides or {}, block_overrides or BlockOverrides())
        runner, budget = TracedRunner(), Budget(request, spool)
        if before is None:
            runner.open(view)
        else:
            _replay(runner, view, before, budget)
        runner = _opened(attempt, runner)
        runner.override(attempt.plan)
        gas = gas_cap or attempt.environment.gas_limit if call.gas is None else call.gas
        gas = min(gas, gas_cap) if gas_cap else gas
        transaction = transaction_of(call, gas, runner.nonce(call.sender), attempt.view)
        return _traced(runner, transaction, request, budget, as_call=True)

    return _on_known_state(view, run, request, spool, asked_ahead(call))


def _on_known_state(
    view: StateView,
    run: Callable[[TraceRequest, Spool | None], T],
    request: TraceRequest,
    spool: Spool | None,
    calls: Iterable[Mapping[str, Any]] = (),
) -> T:
    """``run(request, spool)``; over a remote state after runs that make it known.

    Those trace calls only and write to no spool, since a run that guesses may be repeated.
    """
    if view.layer.remote_state is not None:
        settled(view.layer, lambda: run(CALLS_ONLY, None), calls)
    return settled(view.layer, lambda: run(request, spool))


def _opened(attempt: Attempt, runner: TracedRunner) -> TracedRunner:
    """A runner on the state of another one, in the environment that the call sees."""
    opened = TracedRunner()
    view = StateView(
        header=attempt.view.header,
        block_hash=attempt.view.block_hash,
        layer=runner.snapshot(),
        ancestors=attempt.view.ancestors,
        schedule=attempt.schedule,
        config=attempt.view.config,
    )
    opened.open(view, environment=attempt.environment)
    return opened


class Budget:
    """The time and bytes that one request has left, and where long text goes."""

    def __init__(self, request: TraceRequest, spool: Spool | None) -> None:
        self.spool = spool
        self.ends = time.monotonic() + BLOCK_TIME_LIMIT
        steps = not request.tracer and request.make is None
        self.limit = TRACE_BYTES_LIMIT if steps else CALLS_BYTES_LIMIT
        self.size = self.limit

    def seconds(self) -> float:
        """Seconds left; TracingError if there are none."""
        left = self.ends - time.monotonic()
        if left <= 0:
            raise TracingError("execution timeout")
        return left


def _place(view: StateView, transaction: Transaction, index: int) -> Place:
    block_hash = view.block_hash if any(view.block_hash) else None
    return Place(block_hash, view.header.number, transaction.hash, index)


def _replay(
    runner: TracedRunner, view: StateView, transactions: Sequence[Transaction], budget: Budget
) -> None:
    """Run the first transactions of a block untraced."""
    runner.open(view)
    with WATCHDOG.watch(runner, budget.seconds()):
        runner.begin()
        runner.replay(transactions)


def _traced(
    runner: TracedRunner,
    transaction: Transaction,
    request: TraceRequest,
    budget: Budget,
    *,
    as_call: bool = False,
    place: Place | None = None,
) -> Any:
    tracer = tracer_for(request, budget.size, budget.spool)
    before = runner.snapshot() if tracer.needs_states else None
    seconds = min(request.timeout, budget.seconds())
    if seconds <= 0:
        raise TracingError("execution timeout")
    try:
        with WATCHDOG.watch(runner, seconds):
            outcome = runner.trace(transaction, tracer.observer, as_call=as_call)
    except InvalidTransaction as error:
        raise TracingError(f"tracing failed: {error.message}") from error
    except ResourceLimitError as error:
        text = f"tracing failed: trace exceeds {budget.limit} bytes"
        raise TracingError(text) from error
    budget.size -= tracer.observer.kept
    finished = Finished(
        transaction=transaction,
        outcome=outcome,
        coinbase=runner.coinbase,
        before=before,
        after=runner.snapshot() if tracer.needs_states else None,
        precompiles=precompiles_of(runner.schedule),
        place=place,
    )
    return tracer.result(finished)
