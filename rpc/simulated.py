"""Results of eth_simulateV1 as JSON: a block object with the outcome of each call."""

from typing import Any

from msgspec import Raw
from msgspec.json import encode

from fastevm.rpc.context import Context
from fastevm.rpc.errors import RpcError, wire_error
from fastevm.rpc.view import View
from fastevm.simulate import (
    AccountChange,
    AssetChange,
    CallExtras,
    CallFrame,
    CallOutcome,
    SimulatedBlock,
    revert_message,
)
from fastevm.wire.text.hex import hex_bytes, hex_word, quantity
from fastevm.wire.transactions import Json, access_list_json

EMPTY = "0x"


def simulated_json(context: Context, simulated: SimulatedBlock, *, full: bool) -> Raw:
    """Return a simulated block as JSON; ``full`` puts transaction objects in place of hashes.

    It is encoded piece by piece: one piece is all that the interpreter does at once, so that large
    answers do not stop the event loop.
    """
    view = View(context.node, simulated.block)
    answer = view.block_json(full=full)
    if full:
        for transaction, sender in zip(answer["transactions"], simulated.senders, strict=True):
            transaction["from"] = hex_bytes(sender)
    answer["calls"] = [
        Raw(encode(_outcome_json(context, view, index, outcome)))
        for index, outcome in enumerate(simulated.calls)
    ]
    return Raw(encode(answer))


def _outcome_json(context: Context, view: View, index: int, outcome: CallOutcome) -> Json:
    answer: Json = {
        "returnData": hex_bytes(outcome.output) if outcome.success else EMPTY,
        "logs": [Raw(view.log_text(entry, index, entry.index)) for entry in outcome.logs],
        "gasUsed": quantity(outcome.gas_used),
        "maxUsedGas": quantity(outcome.max_used_gas),
        "status": quantity(int(outcome.success)),
    }
    if not outcome.success:
        answer |= _failure(context, outcome)
    if outcome.extras is not None:
        answer |= _extras(outcome.extras)
    return answer


def _extras(extras: CallExtras) -> Json:
    """Return the members that the extensions add."""
    answer: Json = {}
    if extras.state_diff is not None:
        answer["stateDiff"] = {
            hex_bytes(address): _change(change) for address, change in extras.state_diff.items()
        }
    if extras.asset_changes is not None:
        answer["assetChanges"] = [_asset(change) for change in extras.asset_changes]
    if extras.access_list is not None:
        answer["accessList"] = access_list_json(extras.access_list)
    if extras.call_tree is not None:
        answer["callTree"] = _tree(extras.call_tree)
    return answer


def _tree(top: CallFrame) -> Raw:
    """Return a call tree as JSON; not by recursion, for frames nest a thousand deep."""
    pieces: list[bytes] = []
    waiting: list[CallFrame | bytes] = [top]
    while waiting:
        item = waiting.pop()
        if isinstance(item, bytes):
            pieces.append(item)
            continue
        head = encode(_frame(item))
        if not item.calls:
            pieces.append(head)
            continue
        pieces += (head[:-1], b',"calls":[')
        waiting.append(b"]}")
        for below in reversed(item.calls):
            waiting += (below, b",")
        waiting.pop()  # no comma before the first
    return Raw(b"".join(pieces))


def _frame(frame: CallFrame) -> Json:
    """Return a frame without those below it, as the call tracer shows it that clients know."""
    answer: Json = {
        "type": frame.kind,
        "from": hex_bytes(frame.caller),
        "to": hex_bytes(frame.address),
        "value": quantity(frame.value),
        "gas": quantity(frame.gas),
        "gasUsed": quantity(frame.gas_used),
        "input": hex_bytes(frame.data),
        "output": hex_bytes(frame.output),
    }
    if frame.error is not None:
        answer["error"] = frame.error
    if frame.reason is not None:
        answer["revertReason"] = frame.reason
    return answer


def _change(change: AccountChange) -> Json:
    answer: Json = {}
    if change.balance is not None:
        answer["balance"] = _pair(*map(quantity, change.balance))
    if change.nonce is not None:
        answer["nonce"] = _pair(*map(quantity, change.nonce))
    if change.code is not None:
        answer["code"] = _pair(*map(hex_bytes, change.code))
    if change.storage:
        answer["storage"] = {
            hex_word(slot): _pair(*map(hex_word, values)) for slot, values in change.storage.items()
        }
    return answer


def _pair(before: str, after: str) -> Json:
    return {"before": before, "after": after}


def _asset(change: AssetChange) -> Json:
    """Return an asset change; amounts lost are quantities with a minus sign."""
    sign = "-" if change.change < 0 else ""
    answer: Json = {"type": change.kind, "address": hex_bytes(change.address)}
    if change.kind not in ("code", "delegation"):
        answer["change"] = sign + quantity(abs(change.change))
    if change.token is not None:
        answer["token"] = hex_bytes(change.token)
    if change.token_id is not None:
        answer["tokenId"] = quantity(change.token_id)
    if change.counterparty is not None:
        answer["counterparty"] = hex_bytes(change.counterparty)
    if change.verified is not None:
        answer["verified"] = change.verified
    return answer


def _failure(context: Context, outcome: CallOutcome) -> dict[str, Any]:
    """Return the members that tell of a failed call, in the shape of the dialect."""
    error = RpcError("simulated_halt", outcome.error)
    if outcome.reverted:
        message = revert_message(outcome.output)
        error = RpcError("simulated_revert", message, data=hex_bytes(outcome.output))
    if not context.dialect.simulate_error_as_text:
        return {"error": wire_error(error, context.dialect)}
    return {"error": str(error), "returnData": hex_bytes(outcome.output)}
