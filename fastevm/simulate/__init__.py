"""Calls, gas estimates and simulated chains on any state, with overrides.

The package itself can be called: ``fastevm.simulate(state, payload)`` is its own `simulate`. Names
are loaded when they are first asked for: the readers of JSON that some of them use stand between
this package and its engine.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

_VALUES = (
    "DEFAULT_GAS_CAP DEFAULT_OUTPUT_CAP DEFAULT_TIMEOUT NO_BLOCK_OVERRIDES AccountChange "
    "AccountOverride AssetChange BlockOverrides BlockStateCalls CallExtras CallFrame CallOutcome "
    "CallRequest CallResult ErrorForm SimulateOptions SimulatePayload SimulatedBlock SimulatedLog "
    "SimulationError StateOverrides StateView has_one_transfer_price is_transfer"
)
# Where each name lives.
_HOMES = {
    **dict.fromkeys(_VALUES.split(), "fastevm.simulate.values"),
    "AccessListEntry": "fastevm.execution.transaction_fields",
    "Authorization": "fastevm.execution.transaction_fields",
    "BundleResult": "fastevm.simulate.batch.results",
    "Cancellation": "fastevm.simulate.engine.deadline",
    "Columns": "fastevm.simulate.batch.columns",
    "LoopBudget": "fastevm.simulate.loop_budget",
    "Plan": "fastevm.simulate.engine.plan",
    "Simulations": "fastevm.simulate.batch.many",
    "call": "fastevm.simulate.calls",
    "estimate_gas": "fastevm.simulate.estimate",
    "extensions_from": "fastevm.wire.simulate_values",
    "lists_of": "fastevm.simulate.engine.plan",
    "make_capsule": "fastevm.simulate.batch.capsule",
    "open_capsule": "fastevm.simulate.batch.capsule",
    "read_request": "fastevm.wire.simulate_request",
    "revert_message": "fastevm.simulate.engine.revert",
    "revert_reason": "fastevm.simulate.engine.revert",
    "simulate": "fastevm.simulate.api",
    "simulate_async": "fastevm.simulate.api",
    "simulate_many": "fastevm.simulate.batch.many",
    "simulate_text": "fastevm.wire.simulate_response",
    "simulate_v1": "fastevm.simulate.engine.simulated_blocks",
    "view_of": "fastevm.simulate.views",
}

__all__ = sorted(_HOMES)


class CallablePackage(ModuleType):
    """A package that is called like the function of its name."""

    def __call__(self, state: Any, payload: Any, **options: Any) -> Any:
        """See `fastevm.simulate.api.simulate`."""
        return self.simulate(state, payload, **options)

    def __getattr__(self, name: str) -> Any:
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(home), name)
        setattr(self, name, value)
        return value


sys.modules[__name__].__class__ = CallablePackage
