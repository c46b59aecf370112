"""The execution that the RPC methods use: the module `fastevm.simulate`.

This is a protocol because a module has no class, and tests replace it by a fake that records what
it was asked.
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
    """Executes calls on a state without changing it; every function may run in any thread.

    Raises `fastevm.errors.InvalidTransaction` for a transaction that breaks a rule, and
    `fastevm.core.simulation.values.SimulationError` for a payload that is refused as a whole.
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

    # Returns the plan in the JSON text of the params of eth_call, and the block parameter; None as
    # below.
    def read_call_params(self, params: bytes) -> tuple[Plan, str] | None: ...
    def call_plan(
        self, view: StateView, plan: Plan, *, gas_cap: int, timeout: float, shows_base_fee: bool
    ) -> CallOutcome | SimpleOutcome: ...

    # Returns the plan in the JSON text of the params, and the params after it; None if the text
    # has an unusual form.
    def read_request(self, params: bytes) -> tuple[Plan, bytes] | None: ...
    def simulate_text(
        self,
        view: StateView,
        plan: Plan,
        options: SimulateOptions,
        form: ErrorForm,
        head: bytes = b"",
    ) -> bytes: ...
