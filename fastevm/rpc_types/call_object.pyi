"""Reads call objects."""

from typing import Any

from fastevm.core.simulation.plan import Plan
from fastevm.core.simulation.values import CallRequest
from fastevm.rpc_types.value_forms import Form

CALL_MEMBERS: frozenset[str]

def call_from(value: Any, form: Form = ...) -> CallRequest: ...
def decode_call(value: Any) -> CallRequest: ...
def read_call_params(params: bytes) -> tuple[Plan, str] | None: ...
