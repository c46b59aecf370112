"""Runs calls, gas estimates and simulated chains on any state, with overrides.

The package itself can be called: ``fastevm.simulate(state, payload)`` calls its function
`simulate`.
"""

import sys
from inspect import Signature, signature
from types import ModuleType
from typing import Any

from fastevm.core.execution.transaction.transaction_fields import AccessListEntry, Authorization
from fastevm.core.simulation.deadline import Deadline
from fastevm.core.simulation.plan import Plan, lists_of
from fastevm.core.simulation.revert import revert_message, revert_reason
from fastevm.core.simulation.simulated_blocks import simulate_v1
from fastevm.core.simulation.values import (
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
    has_one_transfer_price,
    is_transfer,
)
from fastevm.rpc_types.call_object import read_call_params
from fastevm.rpc_types.simulate_request import extensions_from, read_request
from fastevm.rpc_types.simulate_response import simulate_text
from fastevm.simulate.api import simulate, simulate_async
from fastevm.simulate.batch.columns import Columns
from fastevm.simulate.batch.many import Simulations, simulate_many
from fastevm.simulate.batch.repro import make_capsule, open_capsule
from fastevm.simulate.batch.results import BundleResult
from fastevm.simulate.calls import call, call_plan
from fastevm.simulate.estimate import estimate_gas
from fastevm.simulate.l1_charge import estimated_l1_gas
from fastevm.simulate.loop_budget import LoopBudget
from fastevm.simulate.simple_call import SimpleOutcome
from fastevm.simulate.views import view_of
from fastevm.simulate.watch.base import Base
from fastevm.simulate.watch.change import Change
from fastevm.simulate.watch.columns import WatchColumns
from fastevm.simulate.watch.streams import Stream
from fastevm.simulate.watch.view import View
from fastevm.simulate.watch.watch import Changes, Watch, WatchCounters

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
    "Base",
    "BlockOverrides",
    "BlockStateCalls",
    "BundleResult",
    "CallExtras",
    "CallFrame",
    "CallOutcome",
    "CallRequest",
    "CallResult",
    "Change",
    "Changes",
    "Columns",
    "Deadline",
    "ErrorForm",
    "LoopBudget",
    "Plan",
    "SimpleOutcome",
    "SimulateOptions",
    "SimulatePayload",
    "SimulatedBlock",
    "SimulatedLog",
    "SimulationError",
    "Simulations",
    "StateOverrides",
    "StateView",
    "Stream",
    "View",
    "Watch",
    "WatchColumns",
    "WatchCounters",
    "call",
    "call_plan",
    "estimate_gas",
    "estimated_l1_gas",
    "extensions_from",
    "has_one_transfer_price",
    "is_transfer",
    "lists_of",
    "make_capsule",
    "open_capsule",
    "read_call_params",
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


class CallablePackage(ModuleType):
    """A package that can be called like its function of the same name."""

    @property
    def __signature__(self) -> Signature:
        """The signature of the function, which ``help`` and IPython show."""
        return signature(simulate)

    def __call__(self, state: Any, payload: Any, **options: Any) -> Any:
        """Calls `fastevm.simulate.api.simulate`."""
        return simulate(state, payload, **options)


sys.modules[__name__].__class__ = CallablePackage
