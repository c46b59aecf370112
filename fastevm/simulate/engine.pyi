"""Runs chunks of bundles."""

from typing import Any, final

from fastevm.simulate.chunk import Chunk
from fastevm.simulate.values import BlockEnvironment, SimulateOptions, StateView
from fastevm.state.layer import Layer

@final
class Engine:
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
    def run(self, first: int, payloads: list[Any]) -> Chunk: ...
