"""Writes a simulated chain as the result of eth_simulateV1."""

from fastevm.simulate.engine.plan import Plan
from fastevm.simulate.values import ErrorForm, SimulateOptions, StateView

def simulate_text(
    view: StateView,
    plan: Plan,
    options: SimulateOptions,
    form: ErrorForm,
    head: bytes = b"",
) -> bytes: ...
