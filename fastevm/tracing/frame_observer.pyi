"""An observer that passes the records of frames to Python."""

from collections.abc import Callable
from typing import Any

from fastevm.tracing.observer import Observer

class FrameObserver(Observer):
    def __init__(
        self, sink: Callable[[list[dict[str, Any]]], None], *, budget: int = ...
    ) -> None: ...
