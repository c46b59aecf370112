"""Traces transactions of a block.

Contains the common code of all traces: limits, runner, result.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.simulation.deadline import time_limit
from fastevm.core.simulation.values import (
    StateView,
)
from fastevm.core.state.remote import resolved
from fastevm.errors import InvalidTransaction, ResourceLimitError
from fastevm.tracing.flat import TracePosition
from fastevm.tracing.runner import TracedRunner
from fastevm.tracing.spool import Spool
from fastevm.tracing.tracer import Finished, precompiles_of
from fastevm.tracing.tracers import CALL_TRACER, keeps_steps, tracer_for
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
    """Returns a trace of each transaction of a block.

    ``view`` is the state before the block, with the block's own header and rules. A ``block_hash``
    of 32 zero bytes means that the block has no hash yet. With a ``spool``, long struct logs are
    written to the spool, and the trace contains ``SpooledText``. Raises TracingError for an unknown
    tracer, an exceeded limit, or a transaction that is invalid in the block.
    """

    def run(request: TraceRequest, spool: Spool | None) -> list[Any]:
        runner = TracedRunner()
        runner.open(view)
        runner.begin()
        budget = Budget([request], spool)
        return [
            traced(
                runner, transaction, request, budget, position=_position(view, transaction, index)
            )
            for index, transaction in enumerate(transactions)
        ]

    return on_known_state(view, run, request, spool)


def trace_transaction(
    view: StateView,
    transactions: Sequence[Transaction],
    index: int,
    request: TraceRequest,
    *,
    spool: Spool | None = None,
) -> Any:
    """Returns a trace of transaction ``index`` of a block. See ``trace_block``."""

    def run(request: TraceRequest, spool: Spool | None) -> Any:
        runner, budget = TracedRunner(), Budget([request], spool)
        tracer_for(request, 0)  # fails early for an unknown name
        replay(runner, view, transactions[:index], budget)
        position = _position(view, transactions[index], index)
        return traced(runner, transactions[index], request, budget, position=position)

    return on_known_state(view, run, request, spool)


def on_known_state(
    view: StateView,
    run: Callable[[Any, Spool | None], T],
    request: Any,
    spool: Spool | None,
    calls: Iterable[Mapping[str, Any]] = (),
) -> T:
    """Returns ``run(request, spool)`` after fetching the values of a remote state that ``run``
    reads.

    The executions that find these values may be repeated, so they get ``CALLS_ONLY`` as request and
    no spool.
    """
    if view.layer.remote_state is not None:
        resolved(view.layer, lambda: run(CALLS_ONLY, None), calls)
    return resolved(view.layer, lambda: run(request, spool))


class Budget:
    """The remaining time, gas and bytes of a request, and the request's spool."""

    def __init__(
        self,
        requests: Iterable[TraceRequest],
        spool: Spool | None,
        *,
        timeout: float = BLOCK_TIME_LIMIT,
        gas: int | None = None,
    ) -> None:
        self.spool = spool
        self.ends = time.monotonic() + timeout
        self.gas_limit = self.gas = gas  # gas of all calls together; None: no limit
        steps = any(keeps_steps(request) for request in requests)
        self.limit = TRACE_BYTES_LIMIT if steps else CALLS_BYTES_LIMIT
        self.size = self.limit

    def overdrawn(self) -> TracingError:
        """Returns the error of traces that are too large."""
        return TracingError(f"tracing failed: trace exceeds {self.limit} bytes")

    def charge(self, gas: int) -> None:
        """Subtracts the gas of a call. Raises TracingError if the budget is exceeded."""
        if self.gas is not None:
            self.gas -= gas
            if self.gas < 0:
                raise TracingError(
                    f"the calls of this request use more than {self.gas_limit} gas together: "
                    "send fewer calls"
                )

    def seconds(self) -> float:
        """Returns the remaining seconds. Raises TracingError if no time is left."""
        left = self.ends - time.monotonic()
        if left <= 0:
            raise TracingError("execution timeout")
        return left


def _position(view: StateView, transaction: Transaction, index: int) -> TracePosition:
    block_hash = view.block_hash if any(view.block_hash) else None
    return TracePosition(block_hash, view.header.number, transaction.hash, index)


def replay(
    runner: TracedRunner, view: StateView, transactions: Sequence[Transaction], budget: Budget
) -> None:
    """Executes the first transactions of a block without tracing them."""
    runner.open(view)
    with time_limit(runner, budget.seconds()):
        runner.begin()
        runner.replay(transactions)


def traced(
    runner: TracedRunner,
    transaction: Transaction,
    request: TraceRequest,
    budget: Budget,
    *,
    as_call: bool = False,
    position: TracePosition | None = None,
) -> Any:
    # the last trace may exceed the budget, since a tracer checks after a record
    if budget.size < 0:
        raise budget.overdrawn()
    tracer = tracer_for(request, budget.size, budget.spool)
    before = runner.snapshot() if tracer.needs_states else None
    seconds = min(request.timeout, budget.seconds())
    if seconds <= 0:
        raise TracingError("execution timeout")
    try:
        with time_limit(runner, seconds):
            outcome = runner.trace(transaction, tracer.observer, as_call=as_call)
    except InvalidTransaction as error:
        raise TracingError(f"tracing failed: {error.message}") from error
    except ResourceLimitError as error:
        raise budget.overdrawn() from error
    budget.size -= tracer.observer.kept + len(outcome.output)
    budget.charge(outcome.gas_used)
    finished = Finished(
        transaction=transaction,
        outcome=outcome,
        coinbase=runner.coinbase,
        before=before,
        after=runner.snapshot() if tracer.needs_states else None,
        precompiles=precompiles_of(runner.schedule),
        position=position,
        number=runner.number,
    )
    return tracer.result(finished)
