"""eth_callBundle: runs signed transactions one after another, in the format of Flashbots.

Sources: Flashbots' RPC documentation, and the implementations of anvil and reth. Amounts are
decimal strings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

import fastevm
from fastevm import tracing
from fastevm.core.primitives.hex import hex_bytes
from fastevm.core.primitives.replace import replace
from fastevm.errors import TransactionDecodeError
from fastevm.rpc.block_id import LATEST_BLOCK, BlockId, decode_count, decode_number_tag_or_int
from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.registry import Param, RunOn, method
from fastevm.rpc.dispatch.workers import long_running
from fastevm.rpc.errors import RpcError
from fastevm.rpc.limits import TRACED_CALLS
from fastevm.rpc.methods.call_many import failure_of
from fastevm.rpc_types.quantity import (
    DecodeError,
    decode_address,
    decode_bytes,
    decode_uint256,
    object_fault,
)
from fastevm.simulate import DEFAULT_OUTPUT_CAP, BlockOverrides
from fastevm.tracing import Spool, TraceRequest

Json = dict[str, Any]

OUTCOMES: Final = TraceRequest(make=lambda *given: tracing.OutcomeTracer(*given, states=True))
SPACING: Final = 12  # seconds after the state's block, if no timestamp is given
LATEST_TIME: Final = 2**64 - 1  # a timestamp is a uint64


class Bundle(Struct, frozen=True):
    """Raw transactions, overrides of the block in which they run, and the block of their state."""

    transactions: tuple[bytes, ...]
    overrides: BlockOverrides
    state: BlockId = LATEST_BLOCK


def decode_call_bundle(value: Any) -> Bundle:
    """Decode the parameter object of eth_callBundle."""
    if not isinstance(value, dict):
        raise object_fault(value, "EthCallBundle")
    raws, number = value.get("txs"), value.get("blockNumber")
    if not isinstance(raws, list) or not raws:
        raise DecodeError("bundle missing txs")
    if len(raws) > TRACED_CALLS:
        raise DecodeError(f"more than {TRACED_CALLS} transactions")
    if number is None or decode_count(number, field="EthCallBundle.blockNumber") == 0:
        raise DecodeError("bundle missing blockNumber")
    state, coinbase = value.get("stateBlockNumber"), value.get("coinbase")
    difficulty = value.get("difficulty")
    return Bundle(
        tuple(map(decode_bytes, raws)),
        BlockOverrides(
            number=decode_count(number),
            time=_count(value, "timestamp"),
            gas_limit=_count(value, "gasLimit"),
            fee_recipient=None if coinbase is None else decode_address(coinbase),
            base_fee_per_gas=_count(value, "baseFee"),
            difficulty=None if difficulty is None else decode_uint256(difficulty),
        ),
        LATEST_BLOCK if state is None else decode_number_tag_or_int(state),
    )


def _count(value: Json, name: str) -> int | None:
    given = value.get(name)
    return None if given is None else decode_count(given, field=f"EthCallBundle.{name}")


@method("eth_callBundle", Param(decode_call_bundle), run_on=RunOn.WORKER)
@long_running
def call_bundle(context: Context, bundle: Bundle) -> Json:
    """Return the result of each transaction, and the coinbase's gain from the bundle.

    Nothing is submitted. Each transaction runs on the state of the previous one and must be valid;
    an invalid one is an error of the whole bundle. The default timestamp is 12 s after the state's
    block. All transactions share the time limit of a call and the gas limit of a request, and
    return at most 10 MB together.
    """
    view = context.view(bundle.state)
    overrides = bundle.overrides
    if overrides.time is None:
        time = min(view.block.header.timestamp + SPACING, LATEST_TIME)
        overrides = replace(overrides, time=time)
    calls = [tracing.TracedCall(raw, OUTCOMES, overrides) for raw in bundle.transactions]
    try:
        found = tracing.trace_calls(
            view.state(),
            calls,
            gas_budget=context.limits.request_gas,
            timeout=context.limits.call_time,
            spool=Spool(context.trace_room),
            output_cap=DEFAULT_OUTPUT_CAP,
        )
    except TransactionDecodeError as fault:
        raise RpcError("invalid_params", str(fault)) from None
    base_fee = overrides.base_fee_per_gas
    base_fee = view.block.header.base_fee_per_gas if base_fee is None else base_fee
    results = [Result(item, base_fee or 0) for item in found]
    return _answer(results) | {"stateBlockNumber": view.block.number}


class Result:
    """The result of one transaction of a bundle, in wei and gas."""

    def __init__(self, finished: tracing.Finished, base_fee: int) -> None:
        transaction, outcome = finished.transaction, finished.outcome
        before, after = finished.before, finished.after
        assert before is not None and after is not None
        coinbase = finished.coinbase
        self.transaction, self.outcome = transaction, outcome
        self.gas_used = outcome.gas_used
        self.price = transaction.effective_gas_price(base_fee) - base_fee
        self.fees = self.gas_used * self.price
        self.coinbase_gain = max(after.balance(coinbase) - before.balance(coinbase), 0)

    def json(self) -> Json:
        """Return the result as JSON."""
        transaction, outcome = self.transaction, self.outcome
        output = hex_bytes(outcome.output if outcome.success or outcome.reverted else b"")
        outcome_json = {"value": output} if outcome.success else {"error": failure_of(outcome)}
        if not outcome.success:
            outcome_json["revert"] = output
        return {
            **_gains(self.coinbase_gain, self.fees),
            "fromAddress": hex_bytes(transaction.sender or b""),
            "gasPrice": str(self.price),
            "gasUsed": self.gas_used,
            "toAddress": None if transaction.to is None else hex_bytes(transaction.to),
            "txHash": hex_bytes(transaction.hash),
            **outcome_json,
        }


def _gains(gain: int, fees: int) -> dict[str, str]:
    return {
        "coinbaseDiff": str(gain),
        "ethSentToCoinbase": str(max(gain - fees, 0)),
        "gasFees": str(fees),
    }


def _answer(results: Sequence[Result]) -> Json:
    gain = sum(result.coinbase_gain for result in results)
    gas = sum(result.gas_used for result in results)
    fees = sum(result.fees for result in results)
    hashes = b"".join(result.transaction.hash for result in results)
    return {
        "bundleGasPrice": str(gain // gas if gas else 0),
        "bundleHash": hex_bytes(fastevm.keccak256(hashes)),
        **_gains(gain, fees),
        "results": [result.json() for result in results],
        "totalGasUsed": gas,
    }
