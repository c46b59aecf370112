"""Calls, gas estimates and simulated chains on any state, with overrides.

The package itself can be called: ``fastevm.simulate(state, payload)`` is its own `simulate`.
"""

import sys
from types import ModuleType
from typing import Any

from fastevm.execution.fields import AccessListEntry, Authorization
from fastevm.simulate.answer import simulate_text
from fastevm.simulate.api import simulate, simulate_async
from fastevm.simulate.blocks import simulate_v1
from fastevm.simulate.call import call, estimate_gas, lists_of
from fastevm.simulate.capsule import make_capsule, open_capsule
from fastevm.simulate.chunk import BundleResult
from fastevm.simulate.columns import Columns
from fastevm.simulate.deadline import Cancellation
from fastevm.simulate.many import Simulations, simulate_many
from fastevm.simulate.patience import Patience
from fastevm.simulate.request import Request
from fastevm.simulate.revert import revert_message, revert_reason
from fastevm.simulate.values import (
    DEFAULT_GAS_CAP,
    DEFAULT_OUTPUT_CAP,
    DEFAULT_TIMEOUT,
    NO_BLOCK_OVERRIDES,
    AccountChange,
    AccountOverride,
    AssetChange,
    BlockOverrides,
    BlockStateCalls,
    CallExtras,
    CallFrame,
    CallOutcome,
    CallRequest,
    CallResult,
    ErrorForm,
    SimulatedBlock,
    SimulatedLog,
    SimulateOptions,
    SimulatePayload,
    SimulationError,
    StateOverrides,
    StateView,
)
from fastevm.simulate.views import view_of
from fastevm.simulate.wire import extensions_from

__all__ = [
    "DEFAULT_GAS_CAP",
    "DEFAULT_OUTPUT_CAP",
    "DEFAULT_TIMEOUT",
    "NO_BLOCK_OVERRIDES",
    "AccessListEntry",
    "AccountChange",
    "AccountOverride",
    "AssetChange",
    "Authorization",
    "BlockOverrides",
    "BlockStateCalls",
    "BundleResult",
    "CallExtras",
    "CallFrame",
    "CallOutcome",
    "CallRequest",
    "CallResult",
    "Cancellation",
    "Columns",
    "ErrorForm",
    "Patience",
    "SimulateOptions",
    "SimulatePayload",
    "SimulatedBlock",
    "SimulatedLog",
    "SimulationError",
    "Simulations",
    "StateOverrides",
    "StateView",
    "call",
    "estimate_gas",
    "extensions_from",
    "lists_of",
    "make_capsule",
    "open_capsule",
    "read_request",
    "revert_message",
    "revert_reason",
    "simulate",
    "simulate_async",
    "simulate_many",
    "simulate_text",
    "simulate_v1",
    "view_of",
]

read_request = Request.read


class CallablePackage(ModuleType):
    """A package that is called like the function of its name."""

    def __call__(self, state: Any, payload: Any, **options: Any) -> list[SimulatedBlock]:
        return simulate(state, payload, **options)


sys.modules[__name__].__class__ = CallablePackage
