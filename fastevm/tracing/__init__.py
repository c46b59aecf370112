"""Traces of runs: struct logs, call trees, prestates, access lists and EIP-3155 lines."""

from fastevm.tracing.access_list import AccessListResult, create_access_list
from fastevm.tracing.blocks import trace_block, trace_call, trace_transaction
from fastevm.tracing.spool import Spool, SpooledText, SpoolRoom
from fastevm.tracing.values import (
    DEFAULT_TIMEOUT,
    StepOptions,
    TraceRequest,
    TracingError,
    seconds_of,
)

__all__ = [
    "DEFAULT_TIMEOUT",
    "AccessListResult",
    "Spool",
    "SpoolRoom",
    "SpooledText",
    "StepOptions",
    "TraceRequest",
    "TracingError",
    "create_access_list",
    "seconds_of",
    "trace_block",
    "trace_call",
    "trace_transaction",
]
