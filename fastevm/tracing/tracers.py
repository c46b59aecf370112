"""The tracers by name: the observer of each, and its result."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final, Protocol

import msgspec

from fastevm.execution.transaction import Transaction
from fastevm.simulate.values import CallOutcome
from fastevm.state.layer import Layer
from fastevm.tracing.access_observer import AccessObserver
from fastevm.tracing.call_tree import CallTree
from fastevm.tracing.observer import Observer
from fastevm.tracing.prestate import PrestateOptions, accessed_slots, prestate_json
from fastevm.tracing.spool import Spool
from fastevm.tracing.step_loggers import StructLogger
from fastevm.tracing.values import StepOptions, TraceRequest, TracingError
from fastevm.wire.text.hex import hex_bytes

CALL_TRACER: Final = "callTracer"
SHOWN_NAME: Final = 64  # characters of a caller's text that an error repeats


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A transaction after its traced run; the two states only if the tracer needs them."""

    transaction: Transaction
    outcome: CallOutcome
    coinbase: bytes
    before: Layer | None
    after: Layer | None


class Tracer(Protocol):
    """Traces one transaction; ``result`` is a JSON value, raw JSON, or ``SpooledText`` of it."""

    @property
    def observer(self) -> Observer: ...
    @property
    def needs_states(self) -> bool: ...
    def result(self, finished: Finished) -> Any: ...


class StructLogTracer:
    """Every step; the default."""

    needs_states = False

    def __init__(self, options: StepOptions, budget: int, spool: Spool | None) -> None:
        self.observer: StructLogger = StructLogger(options, budget=budget, spool=spool)

    def result(self, finished: Finished) -> Any:
        outcome = finished.outcome
        shows_output = outcome.success or outcome.reverted
        steps = self.observer.text()
        return {
            "gas": outcome.gas_used,
            "failed": not outcome.success,
            "returnValue": hex_bytes(outcome.output if shows_output else b""),
            "structLogs": msgspec.Raw(steps) if isinstance(steps, bytes) else steps,
        }


class CallTracer:
    """The tree of calls."""

    needs_states = False

    def __init__(self, config: Mapping[str, Any], budget: int, spool: Spool | None) -> None:
        self.with_log = _flag(config, "withLog", "callTracerConfig")
        only_top = _flag(config, "onlyTopCall", "callTracerConfig")
        self.observer: CallTree = CallTree(budget=budget, only_top=only_top, spool=spool)

    def result(self, finished: Finished) -> Any:
        text = self.observer.text(
            gas_limit=finished.transaction.gas_limit,
            gas_used=finished.outcome.gas_used,
            logs=finished.outcome.logs if self.with_log else (),
        )
        return msgspec.Raw(text) if isinstance(text, bytes) else text


class PrestateTracer:
    """The state that the transaction accessed."""

    needs_states = True

    def __init__(self, config: Mapping[str, Any], budget: int, _: Spool | None) -> None:
        struct = "prestateTracerConfig"
        self.options = PrestateOptions(
            diff=_flag(config, "diffMode", struct),
            code=not _flag(config, "disableCode", struct),
            storage=not _flag(config, "disableStorage", struct),
            include_empty=_flag(config, "includeEmpty", struct),
        )
        if self.options.diff and self.options.include_empty:
            raise TracingError("cannot use diffMode with includeEmpty")
        self.observer: AccessObserver = AccessObserver(skip_failed=True)

    def result(self, finished: Finished) -> Any:
        before, after = finished.before, finished.after
        assert before is not None and after is not None
        accessed = accessed_slots(self.observer, _always_accessed(finished), (before, after))
        return prestate_json(accessed, before, after, self.options)


def _always_accessed(finished: Finished) -> Iterable[bytes]:
    """The accounts that a transaction accesses in any case."""
    transaction = finished.transaction
    yield transaction.sender or bytes(20)
    yield finished.coinbase
    yield from (authority for authority in transaction.authorities if authority is not None)
    target = transaction.to or finished.outcome.created
    if target is not None:
        yield target


_TRACERS: Final[Mapping[str, Callable[[Mapping[str, Any], int, Spool | None], Tracer]]] = {
    CALL_TRACER: CallTracer,
    "prestateTracer": PrestateTracer,
}


def tracer_for(request: TraceRequest, budget: int, spool: Spool | None = None) -> Tracer:
    """A tracer for one transaction; ``budget``: bytes that it may keep, in ``spool`` if long.

    TracingError for an unknown name, with the nearest known one, and for an option of a wrong type.
    """
    if not request.tracer:
        return StructLogTracer(request.steps, budget, spool)
    make = _TRACERS.get(request.tracer)
    if make is None:
        raise TracingError(unknown_tracer(request.tracer))
    return make(request.config or {}, budget, spool)


def unknown_tracer(name: str) -> str:
    """The message for a tracer that does not exist."""
    near = get_close_matches(name, _TRACERS, n=1, cutoff=0.4)
    hint = f'did you mean "{near[0]}"?' if near else f"there are {' and '.join(_TRACERS)}"
    return f'unknown tracer "{name[:SHOWN_NAME]}": {hint}'


def _flag(config: Mapping[str, Any], name: str, struct: str) -> bool:
    """An option that is true or false; missing and null are false, others are ignored."""
    value = config.get(name)
    if value is None or isinstance(value, bool):
        return bool(value)
    kinds: dict[type, str] = {str: "string", list: "array", dict: "object"}
    kind = kinds.get(type(value), "number")
    raise TracingError(
        f"json: cannot unmarshal {kind} into Go struct field {struct}.{name} of type bool"
    )
