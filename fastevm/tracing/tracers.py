"""The tracers by name, each with its observer and its result."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from fastevm.core.primitives.hex import hex_bytes
from fastevm.core.primitives.suggestion import nearest
from fastevm.tracing.call_tree import CallTree
from fastevm.tracing.erc7562 import Erc7562Tracer
from fastevm.tracing.frame_tracers import FlatCallTracer, FourByteTracer
from fastevm.tracing.javascript import JavaScriptTracer
from fastevm.tracing.observer import Observer, observer_of
from fastevm.tracing.prestate import PrestateTracer
from fastevm.tracing.profile_tracers import (
    COVERAGE_TRACER,
    EDGE_TRACER,
    GAS_TRACER,
    CoverageTracer,
    EdgeTracer,
    GasTracer,
)
from fastevm.tracing.spool import Spool
from fastevm.tracing.step_loggers import StructLogger
from fastevm.tracing.tracer import Finished, Tracer, flag
from fastevm.tracing.values import StepOptions, TraceRequest, TracingError, is_program

CALL_TRACER: Final = "callTracer"
MUX_TRACER: Final = "muxTracer"
MUX_LIMIT: Final = 16  # tracers per muxTracer
SHOWN_NAME: Final = 64  # characters of a caller's name that an error repeats


class StructLogTracer:
    """Returns struct logs of every step. This is the default tracer."""

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
    """Returns the call tree."""

    needs_states = False

    def __init__(self, config: Mapping[str, Any], budget: int, spool: Spool | None) -> None:
        self.with_log = flag(config, "withLog", "callTracerConfig")
        only_top = flag(config, "onlyTopCall", "callTracerConfig")
        self.observer: CallTree = CallTree(budget=budget, only_top=only_top, spool=spool)

    def result(self, finished: Finished) -> Any:
        text = self.observer.text(
            gas_limit=finished.transaction.gas_limit,
            gas_used=finished.outcome.gas_used,
            logs=finished.outcome.logs if self.with_log else (),
        )
        return msgspec.Raw(text) if isinstance(text, bytes) else text


class NoopTracer:
    """Returns an empty object."""

    needs_states = False

    def __init__(self, config: Mapping[str, Any], budget: int, _: Spool | None) -> None:
        self.observer: Observer = Observer()

    def result(self, finished: Finished) -> Any:
        return {}


class MuxTracer:
    """Runs several tracers in one execution. The configuration maps names to configurations."""

    def __init__(self, config: Mapping[str, Any], budget: int, spool: Spool | None) -> None:
        if len(config) > MUX_LIMIT:
            raise TracingError(f"muxTracer: more than {MUX_LIMIT} tracers")
        share = budget // max(len(config), 1)
        self.tracers = {name: _part(name, part, share, spool) for name, part in config.items()}
        self.observer: Observer = observer_of([each.observer for each in self.tracers.values()])
        self.needs_states = any(each.needs_states for each in self.tracers.values())

    def result(self, finished: Finished) -> Any:
        return {name: tracer.result(finished) for name, tracer in self.tracers.items()}


def _part(name: str, config: Any, budget: int, spool: Spool | None) -> Tracer:
    if not name or name == MUX_TRACER:
        raise TracingError(f'muxTracer: "{name}" cannot be nested in muxTracer')
    if config is not None and not isinstance(config, dict):
        raise TracingError(f"muxTracer: the configuration of {name[:SHOWN_NAME]} is not an object")
    return tracer_for(TraceRequest(tracer=name, config=config), budget, spool)


_TRACERS: Final[Mapping[str, Callable[[Mapping[str, Any], int, Spool | None], Tracer]]] = {
    CALL_TRACER: CallTracer,
    "flatCallTracer": FlatCallTracer,
    "prestateTracer": PrestateTracer,
    "4byteTracer": FourByteTracer,
    MUX_TRACER: MuxTracer,
    "erc7562Tracer": Erc7562Tracer,
    "noopTracer": NoopTracer,
    GAS_TRACER: GasTracer,
    COVERAGE_TRACER: CoverageTracer,
    EDGE_TRACER: EdgeTracer,
}

TRACER_NAMES: Final = tuple(_TRACERS)


def tracer_for(request: TraceRequest, budget: int, spool: Spool | None = None) -> Tracer:
    """Returns a tracer for one transaction. ``budget``: bytes that the tracer may store.

    Raises TracingError for an unknown name, with a suggestion, and for an option of a wrong type.
    """
    if request.make is not None:
        own: Tracer = request.make(budget, spool)
        return own
    if not request.tracer:
        return StructLogTracer(request.steps, budget, spool)
    make = _TRACERS.get(request.tracer)
    if make is None and is_program(request.tracer):
        return JavaScriptTracer(request.tracer, request.config, request.timeout, budget)
    if make is None:
        raise TracingError(unknown_tracer(request.tracer))
    return make(request.config or {}, budget, spool)


def keeps_steps(request: TraceRequest) -> bool:
    """Returns whether the tracer of a request stores every step."""
    name = request.tracer
    return is_program(name) if name else request.make is None


def unknown_tracer(name: str) -> str:
    """Returns the error message for an unknown tracer."""
    near = nearest(name, _TRACERS, cutoff=0.4)
    hint = f'did you mean "{near[0]}"?' if near else f"there are {', '.join(_TRACERS)}"
    return f'unknown tracer "{name[:SHOWN_NAME]}": {hint}'
