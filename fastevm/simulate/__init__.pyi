"""Calls, gas estimates and simulated chains on any state, with overrides."""

from fastevm.execution.transaction_fields import AccessListEntry as AccessListEntry
from fastevm.execution.transaction_fields import Authorization as Authorization
from fastevm.simulate.api import simulate as simulate
from fastevm.simulate.api import simulate_async as simulate_async
from fastevm.simulate.batch.capsule import make_capsule as make_capsule
from fastevm.simulate.batch.capsule import open_capsule as open_capsule
from fastevm.simulate.batch.columns import Columns as Columns
from fastevm.simulate.batch.many import Simulations as Simulations
from fastevm.simulate.batch.many import simulate_many as simulate_many
from fastevm.simulate.batch.results import BundleResult as BundleResult
from fastevm.simulate.calls import call as call
from fastevm.simulate.engine.deadline import Cancellation as Cancellation
from fastevm.simulate.engine.plan import Plan as Plan
from fastevm.simulate.engine.plan import lists_of as lists_of
from fastevm.simulate.engine.revert import revert_message as revert_message
from fastevm.simulate.engine.revert import revert_reason as revert_reason
from fastevm.simulate.engine.simulated_blocks import simulate_v1 as simulate_v1
from fastevm.simulate.estimate import estimate_gas as estimate_gas
from fastevm.simulate.loop_budget import LoopBudget as LoopBudget
from fastevm.simulate.values import (
    DEFAULT_GAS_CAP as DEFAULT_GAS_CAP,
)
from fastevm.simulate.values import (
    DEFAULT_OUTPUT_CAP as DEFAULT_OUTPUT_CAP,
)
from fastevm.simulate.values import (
    DEFAULT_TIMEOUT as DEFAULT_TIMEOUT,
)
from fastevm.simulate.values import (
    NO_BLOCK_OVERRIDES as NO_BLOCK_OVERRIDES,
)
from fastevm.simulate.values import (
    AccountChange as AccountChange,
)
from fastevm.simulate.values import (
    AccountOverride as AccountOverride,
)
from fastevm.simulate.values import (
    AssetChange as AssetChange,
)
from fastevm.simulate.values import (
    BlockOverrides as BlockOverrides,
)
from fastevm.simulate.values import (
    BlockStateCalls as BlockStateCalls,
)
from fastevm.simulate.values import (
    CallExtras as CallExtras,
)
from fastevm.simulate.values import (
    CallFrame as CallFrame,
)
from fastevm.simulate.values import (
    CallOutcome as CallOutcome,
)
from fastevm.simulate.values import (
    CallRequest as CallRequest,
)
from fastevm.simulate.values import (
    CallResult as CallResult,
)
from fastevm.simulate.values import (
    ErrorForm as ErrorForm,
)
from fastevm.simulate.values import (
    SimulatedBlock as SimulatedBlock,
)
from fastevm.simulate.values import (
    SimulatedLog as SimulatedLog,
)
from fastevm.simulate.values import (
    SimulateOptions as SimulateOptions,
)
from fastevm.simulate.values import (
    SimulatePayload as SimulatePayload,
)
from fastevm.simulate.values import (
    SimulationError as SimulationError,
)
from fastevm.simulate.values import (
    StateOverrides as StateOverrides,
)
from fastevm.simulate.values import (
    StateView as StateView,
)
from fastevm.simulate.values import (
    has_one_transfer_price as has_one_transfer_price,
)
from fastevm.simulate.values import (
    is_transfer as is_transfer,
)
from fastevm.simulate.views import view_of as view_of
from fastevm.wire.simulate_request import read_request as read_request
from fastevm.wire.simulate_response import simulate_text as simulate_text
from fastevm.wire.simulate_values import extensions_from as extensions_from
