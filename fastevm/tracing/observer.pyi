"""Observers of an execution."""

from collections.abc import Sequence

class Observer:
    """Base class of observers. By itself it records nothing."""

    @property
    def kept(self) -> int: ...

class PairObserver(Observer):
    def __init__(self, first: Observer, second: Observer) -> None: ...

def observer_of(observers: Sequence[Observer]) -> Observer: ...
