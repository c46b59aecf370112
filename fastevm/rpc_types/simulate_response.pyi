"""Writes a simulated chain as the result of eth_simulateV1."""

from fastevm.core.simulation.plan import Plan
from fastevm.core.simulation.values import ErrorForm, SimulateOptions, StateView

def simulate_text(
    view: StateView,
    plan: Plan,
    options: SimulateOptions,
    form: ErrorForm,
    head: bytes = b"",
) -> bytes: ...
