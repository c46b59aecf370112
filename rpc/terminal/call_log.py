"""Console output of eth_call and eth_estimateGas, which are executed again for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from fastevm import tracing
from fastevm.core.primitives.hex import checksum_address
from fastevm.errors import FastevmError
from fastevm.rpc.before_fork import HeldUpstream
from fastevm.rpc.block_id import LATEST_BLOCK, decode_block
from fastevm.rpc.context import Context
from fastevm.rpc.errors import RpcError
from fastevm.rpc.terminal.block_log import CALLS, console_lines
from fastevm.rpc.terminal.lines import Json
from fastevm.rpc.terminal.rerun_budget import TREE_SIZE, RerunBudget
from fastevm.rpc.view import View
from fastevm.rpc_client.large_json import decode
from fastevm.rpc_types.call_object import decode_call
from fastevm.rpc_types.overrides import decode_block_overrides, decode_state_overrides

METHODS: Final = ("eth_call", "eth_estimateGas")
CALL_NAMES: Final = tuple(name.encode() for name in METHODS)
OVERRIDES: Final = 4  # parameters with both override objects


def may_call(body: bytes) -> bool:
    """Returns whether a body may contain a call."""
    return any(name in body for name in CALL_NAMES)


def calls_of(context: Context, latest: View, body: bytes, budget: RerunBudget) -> Iterator[Json]:
    """The record of each call in a body that wrote to the console.

    ``latest``: the head when the request came. Calls beyond the ``budget`` are left out.
    """
    if budget.is_spent:
        return
    try:
        found = decode(body, msgspec.json.decode)
    except (ValueError, RecursionError):
        return
    for item in found if isinstance(found, list) else [found]:
        params = item.get("params") if isinstance(item, dict) else None
        if budget.is_spent:
            return
        if isinstance(params, list) and params and item.get("method") in METHODS:
            try:
                with budget.charge():
                    record = _call(context, latest, str(item["method"]), params)
                yield from record
            except (FastevmError, RpcError, HeldUpstream, ValueError):
                continue  # the answer contains the error


def _call(context: Context, latest: View, method: str, params: list[Any]) -> list[Json]:
    asked, block, state, header = [*params, *[None] * OVERRIDES][:OVERRIDES]
    request = decode_call(asked)
    selector = LATEST_BLOCK if block is None else decode_block(block)
    view = latest if selector == LATEST_BLOCK else context.view(selector)
    text = tracing.trace_call(
        view.state(),
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
