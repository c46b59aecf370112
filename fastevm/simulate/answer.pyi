"""Writes a simulated chain as JSON text."""

from fastevm.simulate.request import Request
from fastevm.simulate.values import ErrorForm, SimulateOptions, StateView

def simulate_text(
    view: StateView,
    request: Request,
    options: SimulateOptions,
    form: ErrorForm,
    head: bytes = b"",
) -> bytes | None: ...
