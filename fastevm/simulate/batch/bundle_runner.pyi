"""Runs consecutive bundles."""

from typing import Any, final

from fastevm.simulate.batch.results import Results
from fastevm.simulate.values import BlockEnvironment, SimulateOptions, StateView
from fastevm.state.layer import Layer

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
