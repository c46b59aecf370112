"""Several observers of one run."""

from collections.abc import Sequence

from fastevm.tracing.observer import Observer

class PairObserver(Observer):
    def __init__(self, first: Observer, second: Observer) -> None: ...

def observer_of(observers: Sequence[Observer]) -> Observer: ...
