"""Removes or replaces blocks of a development chain, as anvil does."""

from typing import Any, Final

import fastevm
from fastevm.core.primitives.replace import replace
from fastevm.node import impersonated
from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.registry import Param
from fastevm.rpc.errors import RpcError
from fastevm.rpc.methods.accounts import built, filled, is_impersonated, signed
from fastevm.rpc.methods.development import NUMBER, OPTIONAL_NUMBER, attempt, control, methods
from fastevm.rpc.methods.development import decode_number as decode_depth
from fastevm.rpc.methods.fees import next_base_fee, suggested_tip
from fastevm.rpc_types.call_object import decode_call
from fastevm.rpc_types.quantity import DecodeError, decode_bytes, object_fault
from fastevm.simulate import CallRequest

PAIR: Final = 2  # length of a pair: a transaction, the index of its block
MAX_TRANSACTIONS: Final = 10_000  # most transactions in one reorganisation
Wanted = bytes | CallRequest


def decode_pairs(value: Any) -> list[tuple[Wanted, int]]:
    """Decode pairs of a transaction (raw, or a call object) and the index of its new block."""
    if not isinstance(value, list) or len(value) > MAX_TRANSACTIONS:
        raise object_fault(value, f"at most {MAX_TRANSACTIONS} pairs")
    return [_decode_pair(pair) for pair in value]


def _decode_pair(pair: Any) -> tuple[Wanted, int]:
    if not isinstance(pair, list) or len(pair) != PAIR:
        raise object_fault(pair, "a transaction and the place of its block")
    wanted, offset = pair
    decoded = decode_bytes(wanted) if isinstance(wanted, str) else decode_call(wanted)
    return decoded, decode_depth(offset)


def decode_reorg(value: Any) -> tuple[int, list[tuple[Wanted, int]]] | int:
    """Decode a depth, or an object with both parameters of anvil_reorg."""
    if not isinstance(value, dict):
        return decode_depth(value)
    if "depth" not in value:
        raise DecodeError("a reorganisation has no member depth")
    pairs = value.get("txBlockPairs", value.get("tx_block_pairs", []))
    return decode_depth(value["depth"]), decode_pairs(pairs)


@methods(["anvil_rollback"], OPTIONAL_NUMBER)
def rollback(context: Context, depth: int | None) -> None:
    """Remove the newest blocks (default 1) with their transactions."""
    attempt(control(context).rewriting.rollback, 1 if depth is None else depth)


@methods(["debug_setHead"], NUMBER)
def set_head(context: Context, number: int) -> None:
    """Remove the blocks above ``number`` with their transactions."""
    found = control(context)
    head = found.chain.head.number
    if number > head:
        raise RpcError("invalid_params", f"block {number} is above the head {head}")
    attempt(found.rewriting.rollback, head - number)


@methods(["anvil_reorg"], Param(decode_reorg), Param(decode_pairs, optional=True, default=[]))
def reorg(context: Context, wanted: Any, pairs: list[tuple[Wanted, int]]) -> None:
    """Replace the newest blocks by the same number of blocks with only the given transactions.

    Missing fields are filled in for the new branch: the nonce is the sender's next nonce, the fee
    cap is twice the base fee of the branch's first block.
    """
    depth, pairs = (wanted, pairs) if isinstance(wanted, int) else wanted
    rewriting = control(context).rewriting
    parent, layer = attempt(rewriting.ancestor, depth)
    base_fee = next_base_fee(context, parent)
    nonces: dict[bytes, int] = {}
    blocks: dict[int, list[fastevm.Transaction]] = {}
    for item, offset in sorted(pairs, key=lambda pair: pair[1]):
        if isinstance(item, CallRequest):
            item = _with_cap(context, item, base_fee)
        transaction = _transaction(context, layer, item, nonces)
        blocks.setdefault(offset, []).append(transaction)
    attempt(rewriting.reorganise, depth, blocks)


def _with_cap(context: Context, wanted: CallRequest, base_fee: int | None) -> CallRequest:
    """Return the request with a fee cap for the new branch, unless it has a cap or a gas price."""
    if base_fee is None or wanted.gas_price is not None or wanted.max_fee_per_gas is not None:
        return wanted
    tip = wanted.max_priority_fee_per_gas
    tip = suggested_tip(context) if tip is None else tip
    return replace(wanted, max_fee_per_gas=2 * base_fee + tip)


def _transaction(
    context: Context, layer: Any, wanted: Wanted, nonces: dict[bytes, int]
) -> fastevm.Transaction:
    """Return the transaction on the new branch. ``nonces`` has the next nonces of senders."""
    if isinstance(wanted, bytes):
        made: fastevm.Transaction = attempt(fastevm.Transaction.decode, wanted)
        if made.sender is None:
            raise RpcError("invalid_params", f"transaction: {made.signature_fault}")
    else:
        sender = wanted.sender
        nonce = nonces.get(sender, layer.nonce(sender)) if wanted.nonce is None else wanted.nonce
        request = replace(wanted, nonce=nonce)
        if is_impersonated(context, sender):
            chain_id = context.node.config.chain_id
            fields = filled(context, request)
            built(fields)  # raises RpcError about the invalid field
            made = attempt(impersonated, sender, fields, chain_id=chain_id)
        else:
            made = signed(context, request)
    if made.sender is not None:
        nonces[made.sender] = made.nonce + 1
    return made
