"""Records of answers: failed requests with their reason, and transactions that wait in the pool."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from fastevm import Transaction
from fastevm.core.primitives.hex import checksum_address
from fastevm.errors import FastevmError
from fastevm.rpc.context import Context
from fastevm.rpc.methods.fees import next_base_fee
from fastevm.rpc.safe_text import cut
from fastevm.rpc.terminal.block_log import Recorder
from fastevm.rpc.terminal.lines import Json

SENDS: Final = ("eth_sendRawTransaction", "eth_sendTransaction")
GWEI: Final = 10**9


def answers_of(
    context: Context, recorder: Recorder, body: bytes, answer: bytes, *, params: bool
) -> Iterator[Json]:
    """Yields a record for each request of a body: method, the error if it failed, why it waits.

    ``answer`` is empty if it is too long to be read. ``params``: with the parameters.
    """
    answers = {_key(item): item for item in _objects(answer)}
    for request in _objects(body):
        record: Json = {"event": "request", "method": str(request.get("method"))}
        if params and "params" in request:
            record["params"] = msgspec.json.encode(request["params"]).decode()
        answered = answers.get(_key(request), {})
        if "error" in answered:
            record["error"] = _reason(recorder, answered["error"])
            record |= _call(recorder, request)
        elif record["method"] in SENDS:
            reason = _why_it_waits(context, answered.get("result"))
            if reason is not None:
                record |= {"transaction": answered["result"], "waits": reason}
        yield record


def _objects(text: bytes) -> list[dict[str, Any]]:
    if not text:
        return []
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return []
    return [
        item for item in (found if isinstance(found, list) else [found]) if isinstance(item, dict)
    ]


def _key(message: dict[str, Any]) -> str:
    return repr(message.get("id"))


def _reason(recorder: Recorder, error: Any) -> str:
    """Returns the message of an error with the decoded revert data, if it has some."""
    if not isinstance(error, dict):
        return cut(str(error))
    message, data = str(error.get("message", "")), error.get("data")
    if "revert" in message and isinstance(data, str):
        try:
            decoded = recorder.names.revert(bytes.fromhex(data.removeprefix("0x")))
        except ValueError:
            decoded = ""
        if decoded and decoded not in message:
            message = f"{message}: {decoded}"
    return cut(message)


def _call(recorder: Recorder, request: dict[str, Any]) -> Json:
    """Returns sender, receiver and function of the call or transaction in a request."""
    params = request.get("params")
    if not isinstance(params, list) or not params:
        return {}
    asked = params[0]
    if isinstance(asked, dict):
        data = asked.get("input", asked.get("data"))
        sender, to = asked.get("from"), asked.get("to")
    elif str(request.get("method")).startswith("eth_sendRawTransaction"):
        try:
            sent = Transaction.decode(bytes.fromhex(str(asked).removeprefix("0x")))
            sender = None if sent.sender is None else checksum_address(sent.sender)
        except (FastevmError, ValueError):
            return {}
        to = None if sent.to is None else checksum_address(sent.to)
        data = sent.data.hex()
    else:
        return {}
    found: Json = {name: cut(str(it)) for name, it in (("from", sender), ("to", to)) if it}
    try:
        code = bytes.fromhex(str(data or "").removeprefix("0x"))
    except ValueError:
        return found
    if code and to:
        found["function"] = recorder.called(code)
    return found


def _why_it_waits(context: Context, tx_hash: Any) -> str | None:
    """Returns why a node that mines at once has not mined a transaction; None if it will."""
    node = context.node
    if not isinstance(tx_hash, str) or not node.mines_at_once:
        return None
    pooled = node.pool.find(bytes.fromhex(tx_hash[2:]))
    if pooled is None or pooled.sender is None:
        return None
    expected = node.pool.next_nonce(pooled.sender)
    if pooled.nonce > expected:
        return f"nonce {pooled.nonce} is above the next one of its sender, {expected}"
    base_fee = next_base_fee(context, node.chain.head)
    if base_fee is not None and pooled.max_fee_per_gas < base_fee:
        return f"fee below the base fee of {base_fee / GWEI:g} gwei"
    return None
