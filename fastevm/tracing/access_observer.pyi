"""Observers of the accounts and slots that opcodes access."""

from collections.abc import Iterable

from fastevm.tracing.frames import FrameAccess
from fastevm.tracing.observer import Observer

class AccessObserver(Observer):
    accounts: set[bytes]
    callees: set[bytes]
    created: set[bytes]
    slots: dict[bytes, set[int]]
    def __init__(self, *, skip_failed: bool = False) -> None: ...

class Erc7562Observer(Observer):
    frames: list[FrameAccess]
    preimages: set[bytes]
    def __init__(self, *, budget: int = ..., ignored: Iterable[int] = ...) -> None: ...
