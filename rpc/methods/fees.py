"""Fees: the next base fee, blob base fee, suggested tip, and the fee history."""

from typing import Any, Final

import fastevm
from fastevm.core.execution.types import Block, Header
from fastevm.core.primitives.hex import quantity
from fastevm.rpc.before_fork import requested
from fastevm.rpc.block_id import BlockId
from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.params import NUMBER_OR_TAG
from fastevm.rpc.dispatch.registry import Param, RunOn, method
from fastevm.rpc.dispatch.workers import LOOP_OBJECTS, require_worker_above_limit
from fastevm.rpc.errors import RpcError
from fastevm.rpc.limits import FEE_HISTORY_LIMIT, PERCENTILES_LIMIT
from fastevm.rpc.view import View
from fastevm.rpc_types.quantity import DecodeError, object_fault, parse_quantity
from fastevm.rpc_types.transactions import DEPOSIT, Json

TIP_BLOCKS: Final = 20  # number of recent blocks sampled for the suggested tip
TIPS_PER_BLOCK: Final = 3  # lowest tips sampled per block
TIP_PERCENTILE: Final = 60
DEFAULT_TIP: Final = 10**9  # wei, suggested if recent blocks are empty
# wei, suggested on chains of the OP stack, whose blocks are rarely full
OP_STACK_TIP: Final = 10**6
MILLISECONDS: Final = 1000
HEADER_OBJECTS: Final = 4  # reading a header costs about as much as this many JSON objects
RECEIPTS_OBJECTS: Final = LOOP_OBJECTS  # cost of reading the receipts of a block for rewards
U64: Final = 2**64
U64_DIGITS_DECIMAL: Final = 20


@method("eth_baseFee")
def base_fee(context: Context) -> str | None:
    """Return the base fee of the next block; null before London."""
    fee = next_base_fee(context, context.node.chain.head)
    return None if fee is None else quantity(fee)


@method("eth_blobBaseFee")
def blob_base_fee(context: Context) -> str | None:
    """Return the blob base fee of the latest block; null before blobs."""
    fee = _blob_fee(context.latest_view())
    return None if fee is None else quantity(fee)


@method("eth_maxPriorityFeePerGas", run_on=RunOn.WORKER)
def max_priority_fee(context: Context) -> str:
    """Return a tip that recent blocks accepted."""
    return quantity(suggested_tip(context))


@method("eth_gasPrice", run_on=RunOn.WORKER)
def gas_price(context: Context) -> str:
    """Return the suggested tip plus the latest base fee (next on a development node)."""
    head = context.node.chain.head
    if context.dialect.prices_of_next_block:
        return quantity(suggested_tip(context) + (next_base_fee(context, head) or 0))
    return quantity(suggested_tip(context) + _base_fee_of(head))


@method("eth_txGasLimitCap")
def tx_gas_limit_cap(context: Context) -> str | None:
    """Return the highest gas limit that a transaction in the next block may have (EIP-8123).

    Returns null if the rules have no such limit. Ignores the gas limit of the block.
    """
    rules = _next_schedule(context, context.node.chain.head).parameters
    cap = rules["tx_total_gas_cap" if rules["state_gas_version"] else "tx_gas_cap"]
    return quantity(int(cap)) if cap else None


def decode_count(value: Any) -> int:
    """Decode a block count: a JSON number, or decimal or hexadecimal text."""
    number = value if isinstance(value, int) and not isinstance(value, bool) else None
    if isinstance(value, str) and value.isascii() and value.isdigit():
        number = int(value) if len(value) <= U64_DIGITS_DECIMAL else U64
    elif isinstance(value, str):
        number = parse_quantity(value)
    if number is None or number < 0:
        raise object_fault(value, "math.HexOrDecimal64")
    if number >= U64:
        raise DecodeError("block count larger than 64 bits")
    return number


def decode_percentiles(value: Any) -> list[float]:
    """Decode the reward percentiles without checking them."""
    if not isinstance(value, list):
        raise object_fault(value, "[]float64")
    for entry in value:
        if isinstance(entry, bool) or not isinstance(entry, int | float):
            raise object_fault(entry, "float64")
    try:
        return [float(entry) for entry in value]
    except OverflowError:
        raise DecodeError("reward percentile larger than a float64") from None


@method(
    "eth_feeHistory",
    Param(decode_count),
    NUMBER_OR_TAG,
    Param(decode_percentiles, optional=True, default=[]),
    run_on=RunOn.SMALL,
)
def fee_history(context: Context, count: int, newest: BlockId, percentiles: list[float]) -> Json:
    """Return base fees, gas used ratios and rewards of up to 1024 blocks, and the next base fee."""
    if count == 0:
        return {"oldestBlock": quantity(0), "gasUsedRatio": None}
    _check_percentiles(percentiles)
    objects = HEADER_OBJECTS + (RECEIPTS_OBJECTS if percentiles else 0)
    require_worker_above_limit(min(count, FEE_HISTORY_LIMIT) * objects)
    last = _newest(context, newest)
    count = min(count, FEE_HISTORY_LIMIT, last.block.number + 1)
    oldest = last.block.number + 1 - count
    history = context.node.history
    if history is None or oldest > history.number:
        return _fees(context, oldest, last, percentiles)
    upstream = [quantity(history.number + 1 - oldest), quantity(history.number), percentiles]
    before: Json = requested(history, "eth_feeHistory", upstream)
    if last.block.number == history.number:
        return before
    return _joined(before, _fees(context, history.number + 1, last, percentiles))


def _joined(before: Json, after: Json) -> Json:
    """Join the fee history up to the fork block with the history of later blocks.

    The upstream omits blob members if its chain has no blobs.
    """
    count = len(before["gasUsedRatio"])
    absent: Json = {"baseFeePerBlobGas": quantity(0), "blobGasUsedRatio": 0}
    answer: Json = {"oldestBlock": before["oldestBlock"]}
    for name, values in after.items():
        if name != "oldestBlock":
            known = before.get(name) or [absent.get(name)] * count
            answer[name] = known[:count] + values
    return answer


def _fees(context: Context, oldest: int, last: View, percentiles: list[float]) -> Json:
    """Return the fee history of blocks of this chain, ``oldest`` to ``last``."""
    views = _views(context, oldest, last)
    headers = [view.block.header for view in views]
    next_base = next_base_fee(context, last.block) or 0
    answer: Json = {
        "oldestBlock": quantity(oldest),
        "baseFeePerGas": [quantity(h.base_fee_per_gas or 0) for h in headers]
        + [quantity(next_base)],
        "gasUsedRatio": [h.gas_used / h.gas_limit if h.gas_limit else 0 for h in headers],
        "baseFeePerBlobGas": [quantity(_blob_fee(view) or 0) for view in views]
        + [quantity(_next_blob_fee(context, last.block))],
        "blobGasUsedRatio": [_blob_ratio(view) for view in views],
    }
    if percentiles:
        answer["reward"] = [
            [quantity(tip) for tip in _rewards(view, percentiles)] for view in views
        ]
    return answer


def _views(context: Context, oldest: int, last: View) -> list[View]:
    """Return views of the blocks from number ``oldest`` to ``last``, pending ancestors included."""
    pending = () if last.pending is None else last.pending.chain()
    by_number = {block.header.number: block for block in pending}
    views = []
    for number in range(oldest, last.block.number):
        block = by_number.get(number)
        if block is None:
            views.append(context.view(BlockId(number=number)))
        else:
            views.append(View.of_pending(context.node, block))
    return [*views, last]


def _newest(context: Context, selector: BlockId) -> View:
    head = context.node.chain.head.number
    if selector.number is not None and selector.number > head:
        text = f"request beyond head block: requested {selector.number}, head {head}"
        raise RpcError("server_error", text)
    return context.view(selector)


def _check_percentiles(percentiles: list[float]) -> None:
    if len(percentiles) > PERCENTILES_LIMIT:
        text = f"over the query limit {PERCENTILES_LIMIT}"
        raise RpcError("server_error", f"invalid reward percentile: {text}")
    for position, value in enumerate(percentiles):
        if not 0 <= value <= 100:
            raise RpcError("server_error", f"invalid reward percentile: {value:f}")
        if position and value <= percentiles[position - 1]:
            before = percentiles[position - 1]
            text = f"#{position - 1}:{before:f} >= #{position}:{value:f}"
            raise RpcError("server_error", f"invalid reward percentile: {text}")


def _rewards(view: View, percentiles: list[float]) -> list[int]:
    """Return the tip at each percentile of a block's gas, with transactions sorted by tip."""
    block = view.block
    if not block.transactions:
        return [0] * len(percentiles)
    fee = _base_fee_of(block)
    paid = sorted((max(r.effective_gas_price - fee, 0), r.gas_used) for r in view.receipts)
    rewards = []
    index, covered = 0, paid[0][1]
    for percentile in percentiles:
        threshold = int(block.header.gas_used * percentile / 100)
        while covered < threshold and index < len(paid) - 1:
            index += 1
            covered += paid[index][1]
        rewards.append(paid[index][0])
    return rewards


def suggested_tip(context: Context) -> int:
    """Return a tip in wei that recent blocks accepted; 1 gwei if they are empty.

    The tip is 0.001 gwei on chains of the OP stack, unless the newest block was nearly full, and 0
    on Arbitrum, which ignores tips.
    """
    chain = context.node.chain
    rules = chain.schedule_of(chain.head.hash).parameters
    if rules["arbos_version"]:
        return 0
    if rules["has_fee_vaults"]:
        return _tip_on_op_stack(context.latest_view())
    tips: list[int] = []
    for number in range(chain.head.number, max(chain.head.number - TIP_BLOCKS, -1), -1):
        block = chain.block_by_number(number)
        if block is not None and block.transactions:
            tips += _least_tips(context, block)
    if not tips:
        return DEFAULT_TIP
    return sorted(tips)[(len(tips) - 1) * TIP_PERCENTILE // 100]


def _least_tips(context: Context, block: Block) -> list[int]:
    """Return the lowest tips of a block's transactions. Caches the tips of the last few blocks."""
    kept = context.least_tips
    found = kept.get(block.hash)
    if found is None:
        if len(kept) >= 2 * TIP_BLOCKS:
            kept.clear()
        fee = _base_fee_of(block)
        paid = (transaction.effective_gas_price(fee) - fee for transaction in block.transactions)
        found = kept[block.hash] = sorted(paid)[:TIPS_PER_BLOCK]
    return found


def _tip_on_op_stack(view: View) -> int:
    """Return OP_STACK_TIP, or 110 % of the newest block's median tip if that block was full."""
    paid = [r for r in view.receipts if r.tx_type != DEPOSIT]
    header = view.block.header
    if not paid or header.gas_used + max(r.gas_used for r in paid) <= header.gas_limit:
        return OP_STACK_TIP
    fee = _base_fee_of(view.block)
    tips = sorted(r.effective_gas_price - fee for r in paid)
    return max(tips[len(tips) // 2] * 11 // 10, OP_STACK_TIP)


def _base_fee_of(block: Block) -> int:
    return block.header.base_fee_per_gas or 0


def _next_schedule(context: Context, block: Block) -> Any:
    chain, header = context.node.chain, block.header
    spacing = max(context.node.config.block_time_ms // MILLISECONDS, 1)
    known: Block | Header = block
    if not chain.knows(block.hash):  # a pending block
        known = chain.block_by_hash(header.parent_hash) or chain.head
    return chain.schedule_for_child(known, header.timestamp + spacing)


def next_base_fee(context: Context, block: Block) -> int | None:
    """Return the base fee in wei of the block after ``block``; None before London."""
    header, schedule = block.header, _next_schedule(context, block)
    if not schedule.parameters["has_base_fee"]:
        return None
    decided = decided_base_fee(context, block)
    return fastevm.next_base_fee(header, schedule) if decided is None else decided


def decided_base_fee(context: Context, block: Block) -> int | None:
    """Return the base fee in wei that a developer set for the block after ``block``, or None."""
    return context.node.development.next_base_fee(block.hash)


def _blob_fee(view: View) -> int | None:
    excess = view.block.header.excess_blob_gas
    return None if excess is None else fastevm.blob_base_fee(excess, view.schedule)


def _next_blob_fee(context: Context, block: Block) -> int:
    header, schedule = block.header, _next_schedule(context, block)
    if not schedule.parameters["has_blobs"]:
        return 0
    excess = fastevm.next_excess_blob_gas(header, schedule)
    return fastevm.blob_base_fee(excess, schedule)


def _blob_ratio(view: View) -> float:
    header = view.block.header
    if not header.blob_gas_used:
        return 0
    rules = view.schedule.parameters
    if rules["has_da_footprint"]:
        return header.blob_gas_used / header.gas_limit if header.gas_limit else 0
    return header.blob_gas_used / (int(rules["blob_max"]) * int(rules["blob_gas_per_blob"]))
