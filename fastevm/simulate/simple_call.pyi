# Types of calls without overrides and lists.
from fastevm.core.simulation.deadline import Deadline
from fastevm.core.simulation.plan import Plan
from fastevm.core.simulation.values import CallRequest, StateView

class SimpleOutcome:
    success: bool
    reverted: bool
    gas_used: int
    max_used_gas: int
    output: bytes
    error: str | None

class SimpleCaller:
    def open(self, view: StateView, request: CallRequest, shows_base_fee: bool = False) -> None: ...
    def call(
        self, view: StateView, plan: Plan, gas_cap: int, timeout: float, shows_base_fee: bool
    ) -> SimpleOutcome: ...
    def run_limited(self, gas: int, timeout: float) -> SimpleOutcome: ...
    def balance(self, address: bytes) -> int: ...
    def set_deadline(self, deadline: Deadline) -> None: ...
    def run(self, gas: int) -> SimpleOutcome: ...

def is_simple(request: CallRequest) -> bool: ...
