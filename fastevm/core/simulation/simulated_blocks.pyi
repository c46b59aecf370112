"""Runs simulated chains and returns their blocks as Python values."""

from fastevm.core.simulation.plan import Plan
from fastevm.core.simulation.values import (
    SimulatedBlock,
    SimulateOptions,
    SimulatePayload,
    StateView,
)

def simulate_plan(
    view: StateView, plan: Plan, options: SimulateOptions
) -> list[SimulatedBlock]: ...
def simulate_touching(
    view: StateView, plan: Plan, options: SimulateOptions, *, note_touched: bool = True
) -> tuple[list[SimulatedBlock], dict[bytes, list[int]]]: ...
def simulate_v1(
    view: StateView, payload: SimulatePayload, options: SimulateOptions
) -> list[SimulatedBlock]: ...
