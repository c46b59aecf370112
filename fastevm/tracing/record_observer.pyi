"""An observer that keeps all records of an execution, so that they can be read afterwards."""

from collections.abc import Iterator
from typing import Any, Final

from fastevm.tracing.observer import Observer

READ_AT_ONCE: Final[int]

class RecordObserver(Observer):
    """Keeps frames and, with ``steps``, every step with its whole stack.

    ``memory``: whether steps include the memory before the op. ``budget``: bytes of records after
    which the execution ends.
    """

    def __init__(self, *, steps: bool, memory: bool, budget: int) -> None: ...
    def records(self) -> Iterator[dict[str, Any]]:
        """Yields the records in order, in the form of `StepTrace.drain`."""
