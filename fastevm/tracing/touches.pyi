"""Which accounts and slots the ops of a run look at."""

from fastevm.tracing.observer import Observer

class TouchObserver(Observer):
    accounts: set[bytes]
    callees: set[bytes]
    created: set[bytes]
    slots: dict[bytes, set[int]]
    def __init__(self, *, skip_failed: bool = False) -> None: ...
