"""An observer of the accounts and slots that the ops of a run access."""

from fastevm.tracing.observer import Observer

class AccessObserver(Observer):
    accounts: set[bytes]
    callees: set[bytes]
    created: set[bytes]
    slots: dict[bytes, set[int]]
    def __init__(self, *, skip_failed: bool = False) -> None: ...
