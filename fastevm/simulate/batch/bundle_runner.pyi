"""Runs consecutive bundles of calls."""

from typing import Any, final

from fastevm.core.execution.types import BlockEnvironment
from fastevm.core.simulation.values import SimulateOptions, StateView
from fastevm.core.state.layer import Layer
from fastevm.simulate.batch.results import Results

@final
class BundleRunner:
    """Runs bundles on one thread, with its own machine and world.

    ``view``: the state on which bundles run as chains. ``base``: the same state, with the rules of
    the bundles' block as its schedule. ``layer``: the state after the system calls at the block's
    start. ``environment``: the block values that calls see.
    """

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
