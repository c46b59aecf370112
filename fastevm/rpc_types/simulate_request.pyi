"""Reads payloads of eth_simulateV1."""

from collections.abc import Mapping
from typing import Any

from fastevm.core.simulation.plan import Plan
from fastevm.core.simulation.values import BlockStateCalls, SimulatePayload
from fastevm.rpc_types.value_forms import Form

EXTENSIONS: dict[str, str]
ENTRY_MEMBERS: frozenset[str]
PAYLOAD_MEMBERS: frozenset[str]

def payload_from(value: Any, form: Form = ...) -> SimulatePayload: ...
def extensions_from(given: Mapping[str, Any]) -> dict[str, Any]: ...
def block_from(value: Any, form: Form = ...) -> BlockStateCalls: ...
def decode_payload(value: Any, form: Form = ...) -> SimulatePayload: ...
def read_request(params: bytes) -> tuple[Plan, bytes] | None: ...
