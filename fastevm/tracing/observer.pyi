"""Observers of a run."""

from collections.abc import Sequence

class Observer:
    """Base of the observers; keeps nothing."""

    @property
    def kept(self) -> int: ...

class PairObserver(Observer):
    def __init__(self, first: Observer, second: Observer) -> None: ...

def observer_of(observers: Sequence[Observer]) -> Observer: ...
