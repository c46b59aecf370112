"""Fuzzes blocks executed on several threads, and Arrow streams as another library reads them."""

from __future__ import annotations

import ctypes as c
import random
from collections.abc import Callable
from typing import Any, Final

from fastevm.core.execution.block.block import BlockBuilder, execute_block
from fastevm.core.execution.block.header_draft import draft_header
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Header
from fastevm.core.primitives.replace import replace
from fastevm.core.spec.schedule import schedule_for
from fastevm.core.state.layer import Layer
from tests.fuzz.plausible_values import ADDRESSES, CODES, KEYS, SENDERS
from tests.unit.simulate.test_arrow import Array, Schema, stream_of

NO_CODE: Final = {
    bytes.fromhex(address): {"code": b"\0"}
    for address in (
        "00000961ef480eb55e80d19ad83579a64c007002", "0000bbddc7ce488642fb579f8b00f3a590007251"
    )
}  # fmt: skip
PARENT: Final = Header(
    gas_limit=30_000_000, base_fee_per_gas=7, withdrawals_root=bytes(32), blob_gas_used=0,
    excess_blob_gas=0, parent_beacon_block_root=bytes(32), requests_hash=bytes(32),
)  # fmt: skip


def signed(pick: random.Random, nonce: int = 0, key: bytes = KEYS[0]) -> Transaction:
    """Returns a signed transaction whose cost the sender can pay."""
    to = pick.choice((None, *ADDRESSES))
    fields: dict[str, Any] = {
        "data": pick.choice(CODES), "value": pick.choice((0, 1)), "gas_price": 10**9,
        "gas_limit": pick.choice((60_000, 200_000)),
    }  # fmt: skip
    return Transaction.build(nonce=nonce, to=to, **fields).sign(key, chain_id=1)


def sealed_block(
    pick: random.Random, layer: Layer, keep: Callable[[Any], None], value: Callable[[], Any]
) -> Callable[[Any], Any]:
    """Builds and seals a block. Returns a function that executes it on a number of threads."""
    schedule = schedule_for(pick.choice(("prague", "osaka", "amsterdam")))
    amsterdam = bool(schedule.parameters.get("has_block_access_list"))
    parent = PARENT
    if amsterdam:
        parent = replace(PARENT, block_access_list_hash=bytes(32), slot_number=1)
    base = layer.with_accounts(SENDERS | NO_CODE)
    header = draft_header(
        parent, schedule, timestamp=12, coinbase=ADDRESSES[0], parent_beacon_block_root=bytes(32)
    )
    terms: dict[str, Any] = {
        "chain_id": 1, "deposit_contract": b"\x0d" * 20, "ancestors": [parent.hash],
    }  # fmt: skip
    threads = pick.choice((1, 2, 3))
    builder = BlockBuilder(base, header, schedule, withdrawals=(), threads=threads, **terms)
    keep(builder)
    builder.begin()
    transactions = [signed(pick, nonce, key) for nonce in range(pick.randrange(4)) for key in KEYS]
    if pick.randrange(4) == 0:
        transactions.append(value())
    builder.add_all(transactions)
    block, result = builder.seal()
    keep(block)
    keep(result.layer if hasattr(result, "layer") else result)
    if pick.randrange(4) == 0:
        terms[pick.choice(tuple(terms))] = value()
    return lambda count: execute_block(base, block, schedule, threads=count, **terms)


def read_stream(capsule: object, pick: random.Random) -> None:
    """Reads schema and batches of an Arrow stream, and releases them in any order."""
    stream, schema = stream_of(capsule), Schema()
    held: list[Any] = []
    if stream.contents.get_schema(stream, c.byref(schema)) == 0:
        held.append(schema)
    for _ in range(pick.randrange(3)):
        batch = Array()
        if stream.contents.get_next(stream, c.byref(batch)) == 0 and batch.release:
            held.append(batch)
    if pick.randrange(2) and stream.contents.release:
        stream.contents.release(stream)
    pick.shuffle(held)
    for each in held:
        each.release(c.byref(each))
