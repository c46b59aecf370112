"""Runs requests of eth_simulateV1 in one step."""

from typing import final

from fastevm.simulate.request import Request
from fastevm.simulate.values import SimulateOptions, StateView

@final
class ChainRun:
    """Runs one request after the other, one at a time."""

    def cancel(self) -> None: ...
    def rearm(self) -> None: ...
    def run(self, view: StateView, request: Request, options: SimulateOptions) -> bool: ...
    def clear(self) -> None: ...
