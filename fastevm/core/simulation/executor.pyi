"""The executor of simulated chains."""

from typing import Any, final

from fastevm.core.simulation.deadline import Deadline
from fastevm.core.simulation.plan import Plan
from fastevm.core.simulation.values import SimulateOptions, StateView

@final
class ChainExecutor:
    """Runs plans, one at a time. Each thread owns an executor and reuses it.

    After ``run`` it holds the results of the blocks until ``clear``.
    """

    @property
    def touched(self) -> dict[bytes, set[int]] | None: ...
    @property
    def extras(self) -> dict[int, Any] | None: ...
    def set_deadline(self, deadline: Deadline) -> None: ...
    def run(
        self, view: StateView, plan: Plan, options: SimulateOptions, *, note_touched: bool = False
    ) -> None: ...
    def clear(self) -> None: ...
