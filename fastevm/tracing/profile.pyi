"""Gas by pc and by function, and executed pcs."""

from fastevm.tracing.observer import Observer

class Profile(Observer):
    def __init__(self) -> None: ...
    def pcs(self, creates: bool) -> dict[bytes, dict[int, tuple[int, int]]]:
        """Returns address -> pc -> (executions, gas), of init code or of code."""
    def calls(self) -> dict[tuple[bytes, bytes | None], tuple[int, int, int]]:
        """Returns (calls, gas, own gas) by address and selector; selector None: creation."""
