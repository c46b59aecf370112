"""Times a block of a thousand token transfers, from decoding to the roots."""

from __future__ import annotations

import os
from functools import partial

from fastevm import Layer, Transaction
from fastevm.bench.engines.clock import cpu_seconds, wall_seconds
from fastevm.bench.programs.loops import PROGRAM, TOKEN, balance_slot, transfer
from fastevm.core.crypto.secp256k1 import public_key_address
from fastevm.core.execution.block.block import BlockBuilder, execute_block
from fastevm.core.execution.block.header_draft import draft_header
from fastevm.core.execution.transaction.senders import recover_senders
from fastevm.core.execution.types import Block, Header
from fastevm.core.spec.schedule import schedule_for

TRANSFERS = 1000
CASE = "erc20/transfer"  # the calldata of this case is a transfer
FORK = "cancun"
CHAIN_ID = 1
DEPOSIT_CONTRACT = bytes(20)


def keys(count: int) -> list[bytes]:
    """Returns private keys, one for each sender."""
    return [(number + 1).to_bytes(32, "big") for number in range(count)]


def state(owners: list[bytes]) -> Layer:
    """Returns a state with the token, and with senders that have ether and tokens."""
    accounts = {owner: {"balance": 10**20} for owner in owners}
    balances = {balance_slot(owner): 10**18 for owner in owners}
    token = {"nonce": 1, "code": TOKEN, "storage": balances}
    return Layer.of(accounts | {PROGRAM: token})


def signed(secrets: list[bytes], owners: list[bytes]) -> list[bytes]:
    """Returns encoded transactions. Each sender sends tokens to the next sender."""
    return [
        Transaction.build(
            chain_id=CHAIN_ID, nonce=0, gas_limit=100_000, max_fee_per_gas=10**10,
            max_priority_fee_per_gas=10**9, to=PROGRAM,
            data=transfer(owners[(at + 1) % len(owners)], 1000),
        ).sign(secret).raw
        for at, secret in enumerate(secrets)
    ]  # fmt: skip


def make_block(layer: Layer, transactions: list[bytes]) -> Block:
    """Returns the sealed block of the transactions."""
    parent = Header(
        gas_limit=100_000_000, base_fee_per_gas=10**9, withdrawals_root=bytes(32),
        excess_blob_gas=0, blob_gas_used=0, parent_beacon_block_root=bytes(32),
    )  # fmt: skip
    schedule = schedule_for(FORK)
    header = draft_header(
        parent, schedule, timestamp=12, coinbase=b"\xc0" * 20, parent_beacon_block_root=bytes(32)
    )
    builder = BlockBuilder(
        layer, header, schedule, ancestors=[parent.hash], withdrawals=(), chain_id=CHAIN_ID,
        deposit_contract=DEPOSIT_CONTRACT,
    )  # fmt: skip
    builder.begin()
    builder.add_all(decoded(transactions))
    block, _ = builder.seal()
    return block


def decoded(transactions: list[bytes]) -> list[Transaction]:
    """Decodes the transactions again, so that their senders are not cached."""
    return [Transaction.decode(raw) for raw in transactions]


def measure(transfers: int = TRANSFERS) -> dict[str, float]:
    """Returns milliseconds of the parts and million gas per second, each the best of three runs.

    Work on one thread is measured in thread CPU time, which does not depend on the machine's load.
    Sender recovery on several threads is measured in wall time.
    """
    secrets = keys(transfers)
    owners = [public_key_address(secret) for secret in secrets]
    layer = state(owners)
    layer.state_root()
    raw = signed(secrets, owners)
    block = make_block(layer, raw)
    cores = os.cpu_count() or 1
    found: dict[str, list[float]] = {}
    for _ in range(3):
        alone, shared = decoded(raw), decoded(raw)
        parts = {
            "decode": cpu_seconds(partial(decoded, raw)),
            "senders, one thread": cpu_seconds(partial(recover_senders, alone, threads=1)),
            f"senders, {cores} threads (wall)": wall_seconds(
                partial(recover_senders, shared, threads=cores)
            ),
            "execute, senders known": cpu_seconds(partial(run_block, layer, block)),
        }
        for name, seconds in parts.items():
            found.setdefault(name, []).append(seconds)
    milliseconds = {name: round(min(each) * 1e3, 3) for name, each in found.items()}
    gas = block.header.gas_used
    executed = milliseconds["execute, senders known"]
    whole = milliseconds["decode"] + milliseconds["senders, one thread"] + executed
    return {
        **milliseconds,
        "transfers": transfers,
        "gas": gas,
        "Mgas per second, senders known": round(gas / executed / 1e3, 1),
        "Mgas per second, all on one thread": round(gas / whole / 1e3, 1),
    }


def calls_alone(found: dict[str, float], cases: dict[str, dict[str, float]]) -> dict[str, float]:
    """Returns each engine's Mgas per second for a block that consists only of these calls.

    ``found``: the result of `measure`. ``cases``: microseconds of each engine by case. Signatures,
    fees, receipts and roots are not included, so a real block would be slower on other engines.
    """
    gas = found["gas"] / found["transfers"]
    return {
        f"Mgas per second of the calls alone, {engine}": round(gas / microseconds, 1)
        for engine, microseconds in cases.get(CASE, {}).items()
    }


def run_block(layer: Layer, block: Block) -> None:
    """Executes a block and asserts the roots of its header."""
    found = execute_block(
        layer, block, schedule_for(FORK), ancestors=[block.header.parent_hash], chain_id=CHAIN_ID,
        deposit_contract=DEPOSIT_CONTRACT,
    )  # fmt: skip
    if found.state_root != block.header.state_root or found.gas_used != block.header.gas_used:
        raise AssertionError("the block does not give its own state root")
