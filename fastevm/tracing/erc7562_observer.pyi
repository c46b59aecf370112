"""What the frames of a validation access (ERC-7562)."""

from collections.abc import Iterable
from typing import Any

from fastevm.tracing.observer import Observer

class Erc7562Observer(Observer):
    frames: list[Any]
    preimages: set[bytes]
    def __init__(self, *, budget: int = ..., ignored: Iterable[int] = ...) -> None: ...
