"""The ops of a transaction in Parity's vmTrace form."""

from fastevm.tracing.spool import Spool, SpooledText
from fastevm.tracing.text_observer import TextObserver

class VmTracer(TextObserver):
    def __init__(self, *, budget: int = ..., spool: Spool | None = None) -> None: ...
    def text(self) -> bytes | SpooledText: ...
