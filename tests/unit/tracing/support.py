"""Traces calls on a small state."""

import json
from dataclasses import dataclass
from typing import Any

import msgspec

from fastevm.core.execution.types import Header
from fastevm.core.simulation.values import CallRequest, StateView
from fastevm.core.spec.activation import activations_named
from fastevm.core.state.layer import Layer
from fastevm.simulate.views import era_fields
from fastevm.tracing import StepOptions, TraceRequest, trace_call

SENDER, MAIN, OTHER, COINBASE = (bytes([b]) * 20 for b in (0xEE, 0xAA, 0xBB, 0xCB))
RICH = 10**18
Accounts = dict[bytes, dict[str, Any]]


@dataclass(frozen=True)
class Config:
    """A chain config with only the members that a view uses."""

    activations: Any
    chain_id: int = 1
    deposit_contract: bytes = bytes(20)


def view_of(accounts: Accounts, fork: str = "osaka") -> StateView:
    """Returns a view of a block under a fork on the state of ``accounts``."""
    activations = activations_named(fork)
    schedule = activations.at(1, 1)
    header = Header(
        number=1,
        timestamp=1,
        gas_limit=30_000_000,
        coinbase=COINBASE,
        **era_fields(schedule, base_fee=7),
    )
    rich = {SENDER: {"balance": RICH}}
    layer = Layer.of(rich | accounts)
    return StateView(
        header=header,
        block_hash=bytes(32),
        layer=layer,
        ancestors=(),
        schedule=schedule,
        config=Config(activations),
    )


def traced(
    accounts: Accounts,
    *,
    fork: str = "osaka",
    tracer: str | None = None,
    config: dict[str, Any] | None = None,
    steps: StepOptions | None = None,
    timeout: float = 5.0,
    **call: Any,
) -> Any:
    """Returns the decoded trace of a call to MAIN."""
    fields = {"sender": SENDER, "to": MAIN, "gas": 100_000} | call
    request = TraceRequest(
        tracer=tracer, config=config, steps=steps or StepOptions(), timeout=timeout
    )
    answer = trace_call(view_of(accounts, fork), CallRequest(**fields), request)
    return json.loads(msgspec.json.encode(answer))
