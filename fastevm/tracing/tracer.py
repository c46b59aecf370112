"""The tracer protocol, the finished transaction that a tracer receives, and readers of options."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, Protocol

from msgspec import Struct

from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.simulation.values import CallOutcome
from fastevm.core.spec.schedule import ForkSchedule
from fastevm.core.state.layer import Layer
from fastevm.tracing.flat import TracePosition
from fastevm.tracing.observer import Observer
from fastevm.tracing.values import TracingError

SCHEDULES: Final = 16  # cached sets of precompiles


class Finished(Struct, frozen=True, kw_only=True):
    """A transaction after its traced execution. Has both states only if the tracer needs them.

    ``precompiles``: addresses under the rules of the block. ``number``: the number of the block,
    also for a call. ``position``: the position of the transaction; None for a call.
    """

    transaction: Transaction
    outcome: CallOutcome
    coinbase: bytes
    before: Layer | None
    after: Layer | None
    precompiles: frozenset[bytes] = frozenset()
    position: TracePosition | None = None
    number: int = 0


class OutcomeTracer:
    """Returns the `Finished` object, which is not a JSON value. ``states``: include both states."""

    def __init__(self, budget: int, _: Any = None, *, states: bool = False) -> None:
        self.observer, self.needs_states = Observer(), states

    def result(self, finished: Finished) -> Finished:
        return finished


@lru_cache(SCHEDULES)
def precompiles_of(schedule: ForkSchedule) -> frozenset[bytes]:
    """Returns the addresses of the precompiles of a schedule."""
    return frozenset(number.to_bytes(20, "big") for number in schedule.precompiles.values())


class Tracer(Protocol):
    """Traces one transaction. ``result`` is a JSON value, raw JSON or ``SpooledText``."""

    @property
    def observer(self) -> Observer: ...
    @property
    def needs_states(self) -> bool: ...
    def result(self, finished: Finished) -> Any: ...


def always_accessed(finished: Finished) -> Iterable[bytes]:
    """Returns the accounts that every transaction accesses."""
    transaction = finished.transaction
    yield transaction.sender or bytes(20)
    yield finished.coinbase
    yield from (authority for authority in transaction.authorities if authority is not None)
    target = transaction.to or finished.outcome.created
    if target is not None:
        yield target


def flag(config: Mapping[str, Any], name: str, struct: str) -> bool:
    """Reads a boolean option. Missing and null mean false."""
    value = config.get(name)
    if value is None or isinstance(value, bool):
        return bool(value)
    kinds: dict[type, str] = {str: "string", list: "array", dict: "object"}
    kind = kinds.get(type(value), "number")
    raise TracingError(
        f"json: cannot unmarshal {kind} into Go struct field {struct}.{name} of type bool"
    )
