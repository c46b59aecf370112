"""Loggers of steps: struct logs and EIP-3155 lines."""

from typing import Final, TextIO

from fastevm.tracing.spool import Spool, SpooledText
from fastevm.tracing.text_observer import TextObserver
from fastevm.tracing.values import StepOptions

NAME_TEXTS: Final[list[bytes]]  # go-ethereum's names of all 256 opcodes, defined or not

class StructLogger(TextObserver):
    def __init__(
        self, options: StepOptions, *, budget: int = ..., spool: Spool | None = None
    ) -> None: ...
    def text(self) -> bytes | SpooledText: ...

class Eip3155Logger(TextObserver):
    def __init__(
        self,
        stream: TextIO,
        *,
        stack: bool = True,
        memory: bool = False,
        return_data: bool = False,
        standard: bool = False,
    ) -> None: ...
    def flush(self) -> None: ...
