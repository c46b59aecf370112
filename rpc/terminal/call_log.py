"""Console output of eth_call and eth_estimateGas, which are executed again to find it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import msgspec

from fastevm import tracing
from fastevm.core.primitives.hex import checksum_address
from fastevm.errors import FastevmError
from fastevm.rpc.before_fork import HeldUpstream
from fastevm.rpc.block_id import (
    LATEST,
    LATEST_BLOCK,
    PENDING,
    PENDING_BLOCK,
    BlockId,
    decode_block,
)
from fastevm.rpc.context import Context
from fastevm.rpc.errors import RpcError
from fastevm.rpc.terminal.answer_log import is_of_explorer
from fastevm.rpc.terminal.block_log import CALLS, console_lines
from fastevm.rpc.terminal.lines import Json
from fastevm.rpc.terminal.rerun_budget import TREE_SIZE, RerunBudget
from fastevm.rpc.view import View
from fastevm.rpc_client.large_json import decode
from fastevm.rpc_types.call_object import decode_call
from fastevm.rpc_types.overrides import decode_block_overrides, decode_state_overrides

ESTIMATE: Final = "eth_estimateGas"
METHODS: Final = ("eth_call", ESTIMATE)
CALL_NAMES: Final = tuple(name.encode() for name in METHODS)
OVERRIDES: Final = 4  # number of parameters with both override objects


def may_call(body: bytes) -> bool:
    """Returns whether a body may contain a call."""
    return any(name in body for name in CALL_NAMES)


class NewestViews:
    """The blocks that ``latest`` and ``pending`` name at construction, with their states."""

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


def calls_of(
    context: Context, newest: NewestViews, body: bytes, budget: RerunBudget
) -> Iterator[Json]:
    """Yield a record for each call in a body that wrote to the console.

    ``newest``: the blocks when the calls were executed. Calls beyond the ``budget`` are left out.
    """
    if budget.is_spent:
        return
    try:
        found = decode(body, msgspec.json.decode)
    except (ValueError, RecursionError):
        return
    for item in found if isinstance(found, list) else [found]:
        if not isinstance(item, dict) or is_of_explorer(item):
            continue
        params = item.get("params")
        if budget.is_spent:
            return
        if isinstance(params, list) and params and item.get("method") in METHODS:
            try:
                with budget.charge():
                    record = _call(context, newest, str(item["method"]), params)
                yield from record
            except (FastevmError, RpcError, HeldUpstream, ValueError):
                continue  # the answer contains the error


def _call(context: Context, newest: NewestViews, method: str, params: list[Any]) -> list[Json]:
    asked, block, state, header = [*params, *[None] * OVERRIDES][:OVERRIDES]
    request = decode_call(asked)
    if block is not None:
        block_id = decode_block(block)
    else:
        estimates = method == ESTIMATE and context.dialect.estimates_on_pending
        block_id = PENDING_BLOCK if estimates else LATEST_BLOCK
    text = tracing.trace_call(
        newest.of(context, block_id).state(),
        request,
        CALLS,
        state_overrides=decode_state_overrides(state),
        block_overrides=decode_block_overrides(header),
        gas_cap=context.limits.call_gas,
        shows_base_fee=context.dialect.free_calls_see_base_fee,
    )
    if len(text) > TREE_SIZE:
        return []
    lines = list(console_lines(msgspec.json.decode(text)))
    if not lines:
        return []
    to = None if request.to is None else checksum_address(request.to)
    return [{"event": "console", "method": method, "to": to, "console": lines}]
