"""Traces of executions: struct logs, call trees, prestates, access lists and EIP-3155 lines."""

from fastevm.core.state.delegate import delegate_of
from fastevm.tracing.access_list import AccessListResult, create_access_list
from fastevm.tracing.blocks import trace_block, trace_transaction
from fastevm.tracing.calls import TracedCall, state_inside, trace_call, trace_calls
from fastevm.tracing.flat import FlatFrame
from fastevm.tracing.frame_tracers import FlatTrace, FrameTracer, LastStepsTracer
from fastevm.tracing.frames import CallFrame
from fastevm.tracing.last_steps import LastStep, LastSteps
from fastevm.tracing.list_text import list_text
from fastevm.tracing.parity import TYPES, ReplayTracer
from fastevm.tracing.read_slots import find_slot
from fastevm.tracing.spool import Spool, SpooledText, SpoolQuota
from fastevm.tracing.tracer import Finished, OutcomeTracer
from fastevm.tracing.values import (
    DEFAULT_TIMEOUT,
    StepOptions,
    TraceRequest,
    TracingError,
    is_program,
    seconds_of,
)

__all__ = [
    "DEFAULT_TIMEOUT",
    "TYPES",
    "AccessListResult",
    "CallFrame",
    "Finished",
    "FlatFrame",
    "FlatTrace",
    "FrameTracer",
    "LastStep",
    "LastSteps",
    "LastStepsTracer",
    "OutcomeTracer",
    "ReplayTracer",
    "Spool",
    "SpoolQuota",
    "SpooledText",
    "StepOptions",
    "TraceRequest",
    "TracedCall",
    "TracingError",
    "create_access_list",
    "delegate_of",
    "find_slot",
    "is_program",
    "list_text",
    "seconds_of",
    "state_inside",
    "trace_block",
    "trace_call",
    "trace_calls",
    "trace_transaction",
]
