"""Reads go-ethereum's tests of its tracers: a transaction, its accounts and its trace."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec

from fastevm.chain.genesis import genesis_state
from fastevm.conformance.real_traces import as_json, in_order
from fastevm.conformance.sources import test_files as files_in
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Header
from fastevm.core.primitives.hex import from_hex
from fastevm.core.primitives.rlp import decode
from fastevm.core.simulation.values import StateView
from fastevm.core.spec.activation import Activations
from fastevm.simulate.views import era_fields
from fastevm.tracing import TraceRequest, trace_block
from tests.shared_data import SHARED

ARCHIVE = (SHARED / "real-blocks" / "geth_tracetest.tar.zst").required
RLP_STRING = range(0x80, 0xC0)  # first bytes of a typed transaction inside an RLP string


@dataclass(frozen=True)
class Chain:
    """A chain with only the members that a view uses."""

    activations: Activations
    chain_id: int
    deposit_contract: bytes = bytes(20)


@cache
def recorded(folder: str) -> dict[str, dict[str, Any]]:
    """Returns the tests of a folder by name."""
    found = {}
    for name, data in files_in([ARCHIVE]):
        *_, holder, file = name.split("/")
        if holder == folder:
            found[file.removesuffix(".json")] = msgspec.json.decode(data)
    return found


def number(value: Any) -> int:
    return int(value, 0) if isinstance(value, str) else int(value or 0)


def view_of(test: dict[str, Any]) -> StateView:
    """Returns a view of the transaction's block, on the state before the transaction."""
    genesis, context = test["genesis"], test["context"]
    activations = Activations.from_genesis_config(in_order(genesis["config"]))
    height, time = number(context["number"]), number(context["timestamp"])
    schedule = activations.at(height, time)
    base_fee = context.get("baseFeePerGas")
    members = era_fields(schedule) | {
        "base_fee_per_gas": None if base_fee is None else number(base_fee)
    }
    header = Header(
        number=height,
        timestamp=time,
        gas_limit=number(context["gasLimit"]),
        difficulty=number(context.get("difficulty")),
        coinbase=from_hex(context["miner"]),
        mix_hash=from_hex(genesis["mixHash"]),
        **members,
    )
    return StateView(
        header=header,
        block_hash=bytes(32),
        layer=genesis_state(genesis["alloc"]),
        ancestors=(),
        schedule=schedule,
        config=Chain(activations, genesis["config"]["chainId"]),
    )


def traced(test: dict[str, Any], tracer: str) -> Any:
    """Returns the trace of the test's transaction as the JSON values that a client gets."""
    raw = from_hex(test["input"])
    raw = decode(raw) if raw[0] in RLP_STRING else raw
    transaction = Transaction.decode(raw)
    request = TraceRequest(tracer=tracer, config=test.get("tracerConfig"))
    (answer,) = trace_block(view_of(test), [transaction], request)
    return as_json(answer)
