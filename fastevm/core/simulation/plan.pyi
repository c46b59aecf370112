"""Plans: the input of a simulation as C values."""

from typing import Any, final

from fastevm.core.simulation.values import CallRequest, SimulatePayload, StateOverrides

@final
class Plan:
    """The input of a simulation.

    A plan is filled once; then several threads may run it concurrently.
    """

    validation: bool
    trace_transfers: bool
    full_transactions: bool
    state_diff: bool
    asset_changes: bool
    access_list: bool
    call_tree: bool
    @staticmethod
    def of(payload: SimulatePayload) -> Plan: ...
    @staticmethod
    def of_call(request: CallRequest, overrides: StateOverrides) -> Plan: ...
    def call_gas(self, gas_cap: int, gas_limit: int) -> int: ...
    def call_objects(self) -> list[dict[str, str]]: ...
    def check_call(self, chain_id: int) -> None: ...
    @property
    def has_fee_caps(self) -> bool: ...
    @property
    def has_overrides(self) -> bool: ...
    @property
    def is_free(self) -> bool: ...
    @property
    def has_extras(self) -> bool: ...
    @property
    def is_empty(self) -> bool: ...

def lists_of(request: CallRequest) -> dict[str, Any]: ...
