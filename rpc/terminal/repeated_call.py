"""Decodes the calls in requests, so that the terminal can execute them again."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from fastevm import tracing
from fastevm.errors import FastevmError
from fastevm.rpc.block_id import (
    LATEST,
    LATEST_BLOCK,
    PENDING,
    PENDING_BLOCK,
    BlockId,
    decode_block,
)
from fastevm.rpc.context import Context
from fastevm.rpc.view import View
from fastevm.rpc_types.call_object import decode_call
from fastevm.rpc_types.overrides import decode_block_overrides, decode_state_overrides
from fastevm.tracing import TraceRequest

ESTIMATE: Final = "eth_estimateGas"
METHODS: Final = ("eth_call", ESTIMATE)
CALL_NAMES: Final = tuple(name.encode() for name in METHODS)
OVERRIDES: Final = 4  # number of parameters with both override objects


def may_call(body: bytes) -> bool:
    """Returns whether a body may contain a call."""
    return any(name in body for name in CALL_NAMES)


class NewestViews:
    """The ``latest`` and ``pending`` blocks at the time of construction, with their states."""

    def __init__(self, context: Context) -> None:
        self.latest = context.latest_view()
        try:
            self.pending = context.pending_view() or self.latest
        except FastevmError:  # on a fork: the state is not fetched yet
            self.pending = self.latest
        for view in (self.latest, self.pending):
            with suppress(FastevmError):
                view.state()  # the view keeps the state if the chain drops it

    def of(self, context: Context, block: BlockId) -> View:
        """Return the view that ``block`` names. Raises RpcError if there is none."""
        newest = {LATEST: self.latest, PENDING: self.pending}.get(block.tag or "")
        return context.view(block) if newest is None else newest


class RepeatedCall:
    """A call, decoded from the parameters of its request.

    ``newest`` are the newest blocks at the time of the request.

    Raises RpcError or ValueError for invalid parameters, FastevmError if the state is gone.
    """

    def __init__(
        self, context: Context, newest: NewestViews, method: str, params: list[Any]
    ) -> None:
        asked, block, state, header = [*params, *[None] * OVERRIDES][:OVERRIDES]
        self.context, self.request = context, decode_call(asked)
        if block is not None:
            block_id = decode_block(block)
        else:
            estimates = method == ESTIMATE and context.dialect.estimates_on_pending
            block_id = PENDING_BLOCK if estimates else LATEST_BLOCK
        self.view = newest.of(context, block_id)
        self.state_overrides = decode_state_overrides(state)
        self.block_overrides = decode_block_overrides(header)

    def trace(self, request: TraceRequest) -> Any:
        """Executes the call and returns its trace."""
        return tracing.trace_call(
            self.view.state(),
            self.request,
            request,
            state_overrides=self.state_overrides,
            block_overrides=self.block_overrides,
            gas_cap=self.context.limits.call_gas,
            shows_base_fee=self.context.dialect.free_calls_see_base_fee,
        )
