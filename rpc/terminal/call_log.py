"""Logs the console output of eth_call and eth_estimateGas.

The calls are executed again, because their answers do not contain the output.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from fastevm.core.primitives.hex import checksum_address
from fastevm.errors import FastevmError
from fastevm.rpc.before_fork import HeldUpstream
from fastevm.rpc.context import Context
from fastevm.rpc.errors import RpcError
from fastevm.rpc.terminal.block_log import CALLS, console_lines
from fastevm.rpc.terminal.failed_requests import is_of_explorer
from fastevm.rpc.terminal.lines import Json
from fastevm.rpc.terminal.repeated_call import METHODS, NewestViews, RepeatedCall
from fastevm.rpc.terminal.rerun_budget import TREE_SIZE, RerunBudget
from fastevm.rpc_client.large_json import decode


def calls_of(
    context: Context, newest: NewestViews, body: bytes, budget: RerunBudget
) -> Iterator[Json]:
    """Yield a record for each call in a body that wrote to the console.

    ``newest`` are the newest blocks at the time of the calls. Leaves out calls beyond the
    ``budget``.
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
    call = RepeatedCall(context, newest, method, params)
    text = call.trace(CALLS)
    if len(text) > TREE_SIZE:
        return []
    lines = list(console_lines(msgspec.json.decode(text)))
    if not lines:
        return []
    to = None if call.request.to is None else checksum_address(call.request.to)
    return [{"event": "console", "method": method, "to": to, "console": lines}]
