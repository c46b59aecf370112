"""Runs consecutive bundles."""

from typing import Any, final

from fastevm.core.execution.types import BlockEnvironment
from fastevm.core.simulation.values import SimulateOptions, StateView
from fastevm.core.state.layer import Layer
from fastevm.simulate.batch.results import Results

@final
class BundleRunner:
    """One thread's machine and world."""

    def __init__(
        self,
        view: StateView,
        base: StateView,
        layer: Layer,
        environment: BlockEnvironment,
        options: SimulateOptions,
        balances: bool,
    ) -> None: ...
    def cancel(self) -> None: ...
    def stop_overdue(self) -> None: ...
    def run(self, first: int, payloads: list[Any]) -> Results: ...
