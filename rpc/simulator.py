"""The interface of `fastevm.simulate` that RPC methods use.

The interface is a protocol, so that tests can replace the module with a fake that records calls.
"""

from typing import Protocol

from fastevm.simulate import (
    BlockOverrides,
    CallOutcome,
    CallRequest,
    CallResult,
    ErrorForm,
    Plan,
    SimpleOutcome,
    SimulateOptions,
    StateOverrides,
    StateView,
)


class Simulator(Protocol):
    """Executes calls on a state without changing it. Thread-safe.

    Raises `fastevm.errors.InvalidTransaction` for an invalid transaction, and
    `fastevm.core.simulation.values.SimulationError` for an invalid payload.
    """

    def call(
        self,
        view: StateView,
        request: CallRequest,
        *,
        state_overrides: StateOverrides,
        block_overrides: BlockOverrides,
        gas_cap: int,
        timeout: float,
        shows_base_fee: bool,
    ) -> CallResult: ...

    def estimate_gas(
        self,
        view: StateView,
        request: CallRequest,
        *,
        state_overrides: StateOverrides,
        block_overrides: BlockOverrides,
        gas_cap: int,
        timeout: float,
        shows_base_fee: bool,
    ) -> int | CallResult: ...

    # Returns the plan and the block parameter from the JSON text of eth_call's params; None if the
    # text does not have the usual form.
    def read_call_params(self, params: bytes) -> tuple[Plan, str] | None: ...
    def call_plan(
        self, view: StateView, plan: Plan, *, gas_cap: int, timeout: float, shows_base_fee: bool
    ) -> CallOutcome | SimpleOutcome: ...

    # Returns the plan and the remaining params as text; None if the text does not have the usual
    # form.
    def read_request(self, params: bytes) -> tuple[Plan, bytes] | None: ...
    def simulate_text(
        self,
        view: StateView,
        plan: Plan,
        options: SimulateOptions,
        form: ErrorForm,
        head: bytes = b"",
    ) -> bytes: ...
