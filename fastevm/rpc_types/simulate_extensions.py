"""Non-standard results of simulated calls as JSON: state changes, assets, call trees."""

from msgspec import Raw
from msgspec.json import encode

from fastevm.core.primitives.hex import hex_bytes, hex_word, quantity
from fastevm.core.simulation.values import AccountChange, AssetChange, CallExtras, CallFrame
from fastevm.rpc_types.transactions import Json, access_list_json


def extension_members(extras: CallExtras) -> bytes:
    """Returns the additional members of a call, as JSON text that continues an object."""
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
    return b"," + encode(answer)[1:-1] if answer else b""


def _tree(top: CallFrame) -> Raw:
    """Returns a call tree as JSON. Not recursive, because frames may nest a thousand deep."""
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
        waiting.pop()  # no comma before the first frame
    return Raw(b"".join(pieces))


def _frame(frame: CallFrame) -> Json:
    """Returns a frame without its children, in the format of the callTracer."""
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
    """Returns an asset change. Lost amounts are quantities with a minus sign."""
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
