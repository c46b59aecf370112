"""An observer that keeps all records of an execution, so that they can be read afterwards."""

from collections.abc import Iterator
from typing import Any, Final

from fastevm.tracing.observer import Observer

READ_AT_ONCE: Final[int]

class RecordObserver(Observer):
    """Keeps frames and, with ``steps``, every step with its whole stack.

    ``memory``: whether steps include the memory before the op. ``budget``: maximum size of the
    records in bytes; the execution ends beyond it.
    """

    def __init__(self, *, steps: bool, memory: bool, budget: int) -> None: ...
    def records(self) -> Iterator[dict[str, Any]]:
        """Yields the records in order, in the form of `StepTrace.drain`."""
