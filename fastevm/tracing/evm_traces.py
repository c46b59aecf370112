"""Traces of ``EVM.call``, ``create``, ``transact`` and ``deploy`` as ``result.trace``.

``trace`` is one of `NAMES` or a tracer of ``debug_traceTransaction``. If it is a sequence of names,
or a mapping from names to options, the result is a dict by name. Values have the tracer's JSON
form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final

import msgspec

from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.primitives.bytes_like import address_of, bytes_of
from fastevm.core.primitives.deep_json import decode_json
from fastevm.core.primitives.hex import hex_bytes, hex_word
from fastevm.core.simulation.values import CallOutcome, SimulatedLog
from fastevm.core.state.layer import Layer
from fastevm.evm.machine import EVM
from fastevm.evm.result import ExecutionResult, restore_result
from fastevm.tracing.access_observer import AccessObserver
from fastevm.tracing.observer import Observer, observer_of
from fastevm.tracing.profile_tracers import (
    COVERAGE_TRACER,
    EDGE_TRACER,
    GAS_TRACER,
    ProfileTracer,
)
from fastevm.tracing.spool import Spool
from fastevm.tracing.tracer import Finished, Tracer, precompiles_of
from fastevm.tracing.tracers import TRACER_NAMES, tracer_for
from fastevm.tracing.values import (
    TRACE_BYTES_LIMIT,
    StepOptions,
    TraceRequest,
    TracingError,
)
from fastevm.tracing.watch import watched

Json = dict[str, Any]

# Name -> tracer and its options.
NAMES: Final[Mapping[str, tuple[str, Json]]] = {
    "calls": ("callTracer", {"withLog": True}),
    "flat": ("flatCallTracer", {}),
    "prestate": ("prestateTracer", {}),
    "diff": ("prestateTracer", {"diffMode": True}),
    "selectors": ("4byteTracer", {}),
    "gas": (GAS_TRACER, {}),
    "coverage": (COVERAGE_TRACER, {}),
    "edges": (EDGE_TRACER, {}),
}
STEPS: Final = "steps"
TRACES_LIMIT: Final = 16  # traces per execution
# size limit of the last step before the `limit` of steps is reached
STEP_BYTES: Final = 16 * 1024 * 1024


class AccessListTracer:
    """The accounts and slots that the execution accessed, as an access list (EIP-2930)."""

    needs_states = False

    def __init__(self, budget: int, _: Spool | None) -> None:
        self.observer: AccessObserver = AccessObserver()

    def result(self, finished: Finished) -> list[Json]:
        transaction, found = finished.transaction, dict(self.observer.slots)
        known = {transaction.sender, transaction.to, finished.outcome.created}
        for address in self.observer.accounts - known - finished.precompiles:
            found.setdefault(address, set())
        return [
            {
                "address": hex_bytes(address),
                "storageKeys": [hex_word(slot) for slot in sorted(keys)],
            }
            for address, keys in sorted(found.items())
        ]


OWN: Final[Mapping[str, Callable[[int, Spool | None], Tracer]]] = {
    "access_list": AccessListTracer,
}


def request_for(name: str, options: Mapping[str, Any] | None) -> TraceRequest:
    """Returns the request for a name. Raises TracingError, with a suggestion, if unknown."""
    if name == STEPS:
        return TraceRequest(steps=StepOptions(**(options or {})))
    if name in OWN:
        if options:
            raise TracingError(f"{name} accepts no options")
        return TraceRequest(make=OWN[name])
    tracer, usual = NAMES.get(name, (name, {}))
    if tracer not in TRACER_NAMES:
        known = (*NAMES, STEPS, *OWN, *TRACER_NAMES)
        near = get_close_matches(str(name), known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
        raise TracingError(f"unknown trace {str(name)[:64]!r}: {hint}")
    return TraceRequest(tracer=tracer, config={**usual, **(options or {})})


def names_in(trace: Iterable[object]) -> Iterator[str]:
    """Yields the names of traces. Raises TypeError for other values."""
    for name in trace:
        if not isinstance(name, str):
            raise TypeError(f"trace: expected names, found {type(name).__name__}")
        yield name


class Wanted:
    """The requested traces, and their tracers for the current attempt."""

    def __init__(self, trace: object) -> None:
        self.is_single = isinstance(trace, str)
        if isinstance(trace, str):
            self.requests = {trace: request_for(trace, None)}
        elif isinstance(trace, Mapping):
            self.requests = {name: request_for(name, trace[name]) for name in names_in(trace)}
        elif isinstance(trace, Iterable):
            self.requests = {name: request_for(name, None) for name in names_in(trace)}
        else:
            raise TypeError(f"trace must be a name or several names, not {type(trace).__name__}")
        if len(self.requests) > TRACES_LIMIT:
            raise TracingError(f"more than {TRACES_LIMIT} traces of one run")
        self.tracers: dict[str, Tracer] = {}
        self._create()
        # Whether a tracer compares the states before and after.
        self.needs_states = any(each.needs_states for each in self.tracers.values())
        self._is_new = True

    def renew(self) -> Observer:
        """Returns the observer of fresh tracers.

        The first run uses the tracers that exist already.
        """
        if not self._is_new:
            self._create()
        self._is_new = False
        return observer_of([each.observer for each in self.tracers.values()])

    def _create(self) -> None:
        share = TRACE_BYTES_LIMIT // max(len(self.requests), 1)
        self.tracers = {
            name: tracer_for(item, max(share, item.steps.limit + STEP_BYTES))
            for name, item in self.requests.items()
        }

    def result(self, finish: Callable[[], Finished]) -> Any:
        """Returns the trace, or the traces by name. Calls ``finish`` only if a tracer needs it."""
        found: Json = {}
        finished = None
        for name, each in self.tracers.items():
            if isinstance(each, ProfileTracer):
                found[name] = each.result()
            else:
                finished = finish() if finished is None else finished
                found[name] = _values(each.result(finished))
        return next(iter(found.values())) if self.is_single else found


def run_traced(
    evm: EVM,
    trace: object,
    run: Callable[..., ExecutionResult],
    args: tuple[Any, ...],
    options: Json,
) -> ExecutionResult:
    """Returns ``run(evm, *args, **options)`` with its trace. See the module."""
    wanted = Wanted(trace)
    before, transient = evm.state, evm.transient_storage
    forgets = run not in (EVM.transact, EVM.execute) and not options.get("commit")
    if forgets and wanted.needs_states:
        options = {**options, "commit": True}
    forgets = forgets and wanted.needs_states
    result = watched(evm, wanted.renew, run, (evm, *args), options)
    after = evm.state
    try:
        found = wanted.result(lambda: _finished(evm, result, run, args, options, before, after))
    except BaseException:
        forgets = True  # an exception must not change the machine
        raise
    finally:
        if forgets:
            evm.state = before
            evm.transient_storage = transient
    values = (
        result.success, result.output, result.gas_used, result.gas_refunded, result.logs,
        result.error, result.created_address,
    )  # fmt: skip
    return restore_result(*values, found)


def _finished(
    evm: EVM,
    result: ExecutionResult,
    run: Callable[..., ExecutionResult],
    args: tuple[Any, ...],
    options: Json,
    before: Layer,
    after: Layer,
) -> Finished:
    if run is EVM.execute:
        (transaction,) = args
    else:
        has_target = run in (EVM.call, EVM.transact)
        transaction = _sent(evm, before, args if has_target else (None, *args), options)
    return Finished(
        transaction=transaction,
        outcome=_outcome(result),
        coinbase=evm.block.coinbase,
        before=before,
        after=after,
        precompiles=precompiles_of(evm.schedule) | {address_of(each) for each in evm.precompiles},
    )


def _sent(evm: EVM, before: Layer, args: tuple[Any, ...], options: Json) -> Transaction:
    """Returns the call as a transaction, for the tracers."""
    to, data = args
    sender, gas = address_of(options["sender"]), options.get("gas")
    authorizations = options.get("authorization_list")
    fields: Json = {} if authorizations is None else {"authorization_list": authorizations}
    return Transaction.build(
        sender=sender,
        to=None if to is None else address_of(to),
        data=bytes_of(data),
        value=int(options["value"]),
        gas_limit=evm.most_gas() if gas is None else int(gas),
        nonce=before.nonce(sender),
        **fields,
    )


def _outcome(result: ExecutionResult) -> CallOutcome:
    logs = (
        SimulatedLog(each.address, tuple(each.topics), each.data, index, False)
        for index, each in enumerate(result.logs)
    )
    return CallOutcome(
        success=result.success,
        reverted=result.error is not None and result.error.startswith("execution reverted"),
        output=result.output,
        error=result.error,
        gas_used=result.gas_used,
        max_used_gas=result.gas_used,
        logs=tuple(logs),
        created=result.created_address,
    )


def _values(found: Any) -> Any:
    """Decodes JSON text that is a tracer's whole value or a member of that value."""
    if isinstance(found, dict):
        return {name: _decoded(item) for name, item in found.items()}
    return _decoded(found)


def _decoded(found: Any) -> Any:
    return decode_json(found) if isinstance(found, msgspec.Raw) else found
