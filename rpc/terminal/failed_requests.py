"""Creates log records of failed requests, and of transactions that stay in the pool."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from fastevm import Transaction
from fastevm.core.primitives.hex import checksum_address, hex_bytes
from fastevm.core.primitives.safe_text import cut
from fastevm.errors import FastevmError
from fastevm.rpc.before_fork import HeldUpstream
from fastevm.rpc.context import Context
from fastevm.rpc.errors import RpcError
from fastevm.rpc.failure import Failure
from fastevm.rpc.methods.fees import next_base_fee
from fastevm.rpc.terminal.block_log import CALLS, Recorder
from fastevm.rpc.terminal.lines import Json
from fastevm.rpc.terminal.repeated_call import METHODS, NewestViews, RepeatedCall
from fastevm.rpc.terminal.rerun_budget import TREE_SIZE
from fastevm.rpc.view import View

SENDS: Final = ("eth_sendRawTransaction", "eth_sendTransaction")
MINES: Final = ("evm_mine", "anvil_mine", "hardhat_mine")
ADVANCES: Final = ("evm_increaseTime", "anvil_increaseTime")
RESETS: Final = ("anvil_reset", "hardhat_reset", "evm_reset")
EXPLORER_IDS: Final = "explorer-"  # prefix of the ids in the explorer's requests
FOR_EVM_MINE: Final = "for evm_mine"
REVERTED: Final = "execution reverted"
ADDRESS_SIZE: Final = 20
GWEI: Final = 10**9


def is_of_explorer(request: dict[str, Any]) -> bool:
    """Returns whether the explorer sent a request.

    The explorer's calls of contracts may fail routinely.
    """
    return str(request.get("id")).startswith(EXPLORER_IDS)


def answers_of(
    context: Context, recorder: Recorder, latest: View, body: bytes, answer: bytes, *, params: bool
) -> Iterator[Json]:
    """Yields a record for each request in a body.

    A record has the method, the error, and the reason why a transaction stays in the pool.

    The record of a request that builds blocks, moves the clock or resets the chain has a text
    ``happened``. Requests of the explorer have no record, unless they send transactions. ``latest``
    is the head after the answer. ``answer`` is empty if it is too long to parse. With ``params``,
    records include the parameters.
    """
    answers = {_key(item): item for item in _objects(answer)}
    for request in _objects(body):
        record: Json = {"event": "request", "method": str(request.get("method"))}
        if is_of_explorer(request) and record["method"] not in SENDS:
            continue
        if params and "params" in request:
            record["params"] = msgspec.json.encode(request["params"]).decode()
        answered = answers.get(_key(request), {})
        if "error" in answered:
            error = answered["error"]
            record |= _failure(recorder, error) | _call(recorder, latest, request)
            if _lacks_reason(error) and (reason := _inferred(context, recorder, request)):
                record |= {"error": f"{REVERTED}: {reason}", "reason": reason}
        elif "result" in answered:
            record |= _success(context, latest, request, answered["result"])
        yield record


def _success(context: Context, latest: View, request: dict[str, Any], result: Any) -> Json:
    """Returns the effects of a successful request that the record of a block does not show."""
    method, params = request.get("method"), request.get("params")
    first = params[0] if isinstance(params, list) and params else None
    if method in SENDS:
        reason = _why_it_waits(context, result)
        return {} if reason is None else {"transaction": result, "waits": reason}
    if method in MINES:
        return _mined(latest, first if method != "evm_mine" else None)
    if method in ADVANCES:
        return {"happened": f"Time +{_number(first, 0)} s"}
    if method in RESETS:
        return {"happened": "Chain reset"}
    return {}


def _mined(latest: View, count: Any) -> Json:
    """Returns the blocks that were built, without blocks whose transactions are logged."""
    blocks, last = _number(count, 1), latest.block.number
    if blocks > 1:
        return {"happened": f"Mined {blocks} blocks, {last - blocks + 1} to {last}"}
    if blocks == 0 or latest.block.transactions:
        return {}
    return {"happened": f"Block {last} {hex_bytes(latest.block.hash)} empty"}


def _number(value: Any, default: int) -> int:
    """Returns a parameter, which may be a JSON number or a text, as a number."""
    try:
        return int(value, 0) if isinstance(value, str) else int(value)
    except (TypeError, ValueError):
        return default


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


def _failure(recorder: Recorder, error: Any) -> Json:
    """Returns the message of an error and, for a revert, the decoded reason."""
    if not isinstance(error, dict):
        return {"error": cut(str(error))}
    message, data = str(error.get("message", "")), error.get("data")
    if REVERTED in message and isinstance(data, str):
        try:
            reason = recorder.names.revert(bytes.fromhex(data.removeprefix("0x")))
        except ValueError:
            return {"error": cut(message)}
        return {"error": cut(f"{REVERTED}: {reason}"), "reason": cut(reason)}
    return {"error": cut(message)}


def _lacks_reason(error: Any) -> bool:
    """Returns whether an error reports a revert without data."""
    if not isinstance(error, dict) or REVERTED not in str(error.get("message")):
        return False
    return error.get("data") in (None, "0x")


def _inferred(context: Context, recorder: Recorder, request: dict[str, Any]) -> str | None:
    """Returns why a call reverted without data, from a second execution; None if unknown."""
    method, params, budget = str(request.get("method")), request.get("params"), recorder.budget
    if method not in METHODS or not isinstance(params, list) or not params or budget.is_spent:
        return None
    try:
        with budget.charge():
            call = RepeatedCall(context, NewestViews(context), method, params)
            text = call.trace(CALLS)
            if len(text) > TREE_SIZE:
                return None
            tree, code_of = msgspec.json.decode(text), call.view.state().layer.code
            return Failure(recorder.contracts, code_of, tree, call.trace).reason()
    except (FastevmError, RpcError, HeldUpstream, ValueError):
        return None


def _call(recorder: Recorder, latest: View, request: dict[str, Any]) -> Json:
    """Returns sender, receiver, contract name and function of a call or transaction."""
    params = request.get("params")
    if not isinstance(params, list) or not params:
        return {}
    asked = params[0]
    if isinstance(asked, dict):
        data = asked.get("input", asked.get("data"))
        sender, to = _address(asked.get("from")), _address(asked.get("to"))
    elif str(request.get("method")).startswith("eth_sendRawTransaction"):
        try:
            sent = Transaction.decode(bytes.fromhex(str(asked).removeprefix("0x")))
            sender, to = sent.sender, sent.to
        except (FastevmError, ValueError):
            return {}
        data = sent.data.hex()
    else:
        return {}
    found: Json = {
        name: checksum_address(it) for name, it in (("from", sender), ("to", to)) if it is not None
    }
    if to is None:
        return found
    name = recorder.contract_name(latest, to)
    if name is not None:
        found["contractName"] = name
    try:
        code = bytes.fromhex(str(data or "").removeprefix("0x"))
    except ValueError:
        return found
    if code:
        found["function"] = recorder.called(code)
    return found


def _address(text: Any) -> bytes | None:
    try:
        address = bytes.fromhex(str(text or "").removeprefix("0x"))
    except ValueError:
        return None
    return address if len(address) == ADDRESS_SIZE else None


def _why_it_waits(context: Context, tx_hash: Any) -> str | None:
    """Returns why a development node has not mined a transaction; None if no reason is known."""
    node = context.node
    if not isinstance(tx_hash, str):
        return None
    if not node.mines_at_once:
        return FOR_EVM_MINE if node.development.mines_on_request else None
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
