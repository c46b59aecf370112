"""Measures gas by pc and by function, and records the executed pcs."""

from fastevm.tracing.observer import Observer

class Profile(Observer):
    def __init__(self) -> None: ...
    def pcs(self, creates: bool) -> dict[bytes, list[int]]:
        """Returns the executed pcs by address.

        ``creates``: whether to return pcs of init code, not of code.
        """
    def gas_by_pc(self, creates: bool) -> dict[bytes, dict[int, dict[str, int]]]:
        """Returns ``count`` and ``gas`` of each executed pc, by address and pc."""
    def calls(self) -> dict[tuple[bytes, bytes | None], tuple[int, int, int]]:
        """Returns calls, gas, and gas without callees, by (address, selector).

        The selector of a creation is None.
        """
