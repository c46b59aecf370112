"""Measures gas by pc and by function, and records the executed pcs."""

from fastevm.tracing.observer import Observer

class Profile(Observer):
    def __init__(self) -> None: ...
    def pcs(self, creates: bool) -> dict[bytes, list[int]]:
        """Returns address -> executed pcs. ``creates``: of init code, else of code."""
    def gas_by_pc(self, creates: bool) -> dict[bytes, dict[int, dict[str, int]]]:
        """Returns address -> executed pc -> ``count`` of executions and their ``gas``."""
    def calls(self) -> dict[tuple[bytes, bytes | None], tuple[int, int, int]]:
        """Returns (address, selector) -> (calls, gas, gas without callees). Selector None:
        creation.
        """
