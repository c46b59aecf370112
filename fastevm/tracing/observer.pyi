"""Runs transactions and shows an observer what happens."""

class Observer:
    """Sees a run; this one keeps nothing of it."""

    @property
    def kept(self) -> int: ...
