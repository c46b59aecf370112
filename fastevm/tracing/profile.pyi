"""Gas of every pc and every function, and which pcs ran."""

from fastevm.tracing.observer import Observer

class Profile(Observer):
    def __init__(self) -> None: ...
    def pcs(self, creates: bool) -> dict[bytes, dict[int, tuple[int, int]]]:
        """(runs, gas) by pc, by address; of init code or of code."""
    def calls(self) -> dict[tuple[bytes, bytes | None], tuple[int, int, int]]:
        """(calls, gas, gas without that of calls below) by address and selector; None: creation."""
