"""What a simulation is to run, as C values."""

from typing import Any, final

from fastevm.core.simulation.values import CallRequest, SimulatePayload, StateOverrides

@final
class Plan:
    """What a simulation is to run. Filled once; threads may run it at the same time."""

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
    def check_call(self, chain_id: int) -> None: ...
    @property
    def has_extras(self) -> bool: ...
    @property
    def is_empty(self) -> bool: ...

def lists_of(request: CallRequest) -> dict[str, Any]: ...
