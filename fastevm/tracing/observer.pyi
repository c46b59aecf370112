"""Observers of a run."""

class Observer:
    """Base of the observers; keeps nothing."""

    @property
    def kept(self) -> int: ...
