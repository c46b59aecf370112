"""The call tree of a transaction, in the format of go-ethereum's callTracer."""

from collections.abc import Sequence

from fastevm.core.simulation.values import SimulatedLog
from fastevm.tracing.frames import CallFrame
from fastevm.tracing.spool import Spool, SpooledText
from fastevm.tracing.text_observer import TextObserver

def log_text(log: SimulatedLog, index: int, position: int) -> bytes: ...

class CallTree(TextObserver):
    log_owners: list[tuple[int, int]]
    @property
    def first_index(self) -> int: ...
    def __init__(
        self, *, budget: int = ..., only_top: bool = False, spool: Spool | None = None
    ) -> None: ...
    def text(
        self, *, gas_limit: int, gas_used: int, logs: Sequence[SimulatedLog]
    ) -> bytes | SpooledText: ...
    def frames(self) -> list[CallFrame]: ...
