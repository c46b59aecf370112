"""Tests BaseTime: the deposit with the milliseconds, its contract, and the rules for blocks."""

from __future__ import annotations

import json
import lzma
from typing import Any

import pytest

from fastevm import EVM
from fastevm.chain.irregular_changes import state_before
from fastevm.core.execution.block.block import BlockBuilder
from fastevm.core.execution.block.header_draft import draft_header
from fastevm.core.execution.op_stack.base_time import (
    ADMIN_SLOT,
    BASE_TIME,
    IMPLEMENTATION,
    IMPLEMENTATION_SLOT,
    PROXY_ADMIN,
    base_time_deposit,
    check_deposits,
    check_progression,
    millis_part,
    next_millis,
    timestamp_millis,
    with_base_time,
)
from fastevm.core.execution.op_stack.l1_attributes import DEPOSITOR
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Block, Header
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.spec.activation import Activations
from fastevm.core.spec.schedule import schedule_for
from fastevm.core.state.layer import Layer
from fastevm.errors import InvalidBlock
from tests.op_stack_data import OP_STACK, hex_data

DEPOSITS = {
    (9, 600): "7ef877a0821a03cf41d4197c4b19f8f5cf89774b6771d14a189bf35f29b2775453bb5d7d94deaddead"
    "deaddeaddeaddeaddeaddeaddead00019442000000000000000000000000000000000000308080830f424080a4"
    "86bdf3940000000000000000000000000000000000000000000000000000000000000258",
    (
        53_556_127,
        0,
    ): "7ef877a0732c0e3790ffb8b0c2c505631185452a46004ee3b97d48b751ca5b653363f46d94"
    "deaddeaddeaddeaddeaddeaddeaddeaddead00019442000000000000000000000000000000000000308080830f4240"
    "80a486bdf3940000000000000000000000000000000000000000000000000000000000000000",
}
PROXY = bytes.fromhex(
    "365f5f375f5f365f7f360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc545af4"
    "3d5f5f3e6036573d5ffd5b3d5ff3"
)
DENIM, COBALT = schedule_for("denim"), schedule_for("cobalt")


def header(**changes: Any) -> Header:
    values: dict[str, Any] = {
        "parent_hash": bytes(32), "number": 9, "timestamp": 42, "gas_limit": 30_000_000,
    }  # fmt: skip
    return Header(**{**values, **changes})


def other_deposit(**changes: Any) -> Transaction:
    values: dict[str, Any] = {
        "type": 0x7E, "source_hash": bytes(32), "sender": DEPOSITOR, "to": BASE_TIME, "mint": 0,
        "value": 0, "gas_limit": 1_000_000, "is_system": False, "data": b"",
    }  # fmt: skip
    return Transaction.build(**{**values, **changes})


FIRST = other_deposit(to=BASE_TIME[:-1] + b"\x15")


def block(*transactions: Transaction, **changes: Any) -> Block:
    return Block(header(**changes), (FIRST, *transactions))


@pytest.mark.parametrize(("number", "part"), DEPOSITS)
def test_the_deposit_is_that_of_the_specification(number: int, part: int) -> None:
    assert base_time_deposit(number, part).raw.hex() == DEPOSITS[number, part]


def test_a_block_has_a_timestamp_in_milliseconds() -> None:
    found = block(base_time_deposit(9, 200))
    assert timestamp_millis(found.header, found.transactions) == 0xA4D8
    assert timestamp_millis(found.header, (FIRST,)) is None
    assert millis_part(()) is None


def test_the_deposit_is_the_second_transaction_from_denim_on() -> None:
    check_deposits(block(base_time_deposit(9, 600)), DENIM)
    check_deposits(block(other_deposit()), COBALT)
    with pytest.raises(InvalidBlock, match=r"missing BaseTime metadata deposit at tx\[1\]"):
        check_deposits(block(), DENIM)
    with pytest.raises(InvalidBlock, match=r"transactions\[2\]: unexpected BaseTime"):
        check_deposits(block(base_time_deposit(9, 0), base_time_deposit(9, 0)), DENIM)
    with pytest.raises(InvalidBlock, match=r"transactions\[1\]: unexpected BaseTime"):
        check_deposits(block(base_time_deposit(9, 0)), COBALT)


@pytest.mark.parametrize(
    "wrong",
    [
        base_time_deposit(10, 200),
        base_time_deposit(9, 100),
        base_time_deposit(9, 1000),
        other_deposit(data=base_time_deposit(9, 200).data),
        other_deposit(data=base_time_deposit(9, 200).data + b"\0"),
        other_deposit(),
    ],
)
def test_every_field_of_the_deposit_counts(wrong: Transaction) -> None:
    with pytest.raises(InvalidBlock, match="BaseTime metadata deposit"):
        check_deposits(block(wrong), DENIM)


@pytest.mark.parametrize(
    ("before", "after"),
    [((42, 0), (42, 200)), ((42, 600), (42, 800)), ((42, 800), (43, 0))],
)
def test_a_block_comes_200_ms_after_its_parent(
    before: tuple[int, int], after: tuple[int, int]
) -> None:
    parent = header(number=8, timestamp=before[0])
    child = block(base_time_deposit(9, after[1]), timestamp=after[0])
    check_progression(child, parent, before[1], DENIM)
    assert next_millis(parent, before[1], 0) == after
    with pytest.raises(InvalidBlock, match=r"progression from \d+ms to \d+ms; expected exactly"):
        check_progression(child, parent, (before[1] + 200) % 1000, DENIM)


def test_the_first_block_has_no_milliseconds() -> None:
    parent = header(number=8, timestamp=40)
    check_progression(block(base_time_deposit(9, 0)), parent, None, DENIM)
    with pytest.raises(InvalidBlock, match="anchor: expected 0ms, got 200ms"):
        check_progression(block(base_time_deposit(9, 200)), parent, None, DENIM)
    assert next_millis(parent, None, 42) == (42, 0)


def proxy_state(**changes: Any) -> Layer:
    account = {"code": PROXY, "storage": {ADMIN_SLOT: int.from_bytes(PROXY_ADMIN, "big")}}
    return Layer.of({BASE_TIME: {**account, **changes}})


def test_the_code_is_put_into_the_state_once() -> None:
    layer = with_base_time(proxy_state(), 7)
    assert keccak256(layer.code(IMPLEMENTATION)).hex().startswith("9c4c8a497a69d0b8")
    assert layer.storage(BASE_TIME, IMPLEMENTATION_SLOT) == int.from_bytes(IMPLEMENTATION, "big")
    assert with_base_time(layer, 8) is layer
    kept = with_base_time(
        proxy_state().with_accounts({IMPLEMENTATION: {"balance": 3, "nonce": 5}}), 7
    )
    assert (kept.balance(IMPLEMENTATION), kept.nonce(IMPLEMENTATION)) == (3, 5)


def test_a_state_without_the_proxy_is_refused() -> None:
    for layer in (Layer.empty(), proxy_state(storage={ADMIN_SLOT: 7}), proxy_state(code=b"")):
        with pytest.raises(InvalidBlock, match="no proxy of BaseTime"):
            with_base_time(layer, 7)


def test_the_code_appears_with_denim() -> None:
    config = {"optimism": {}, "jovianTime": 0, "denimTime": 50}
    activations = Activations.from_genesis_config(config)
    before = proxy_state()
    assert state_before(activations, before, header(timestamp=48), 49) is before
    after = state_before(activations, before, header(timestamp=48), 50)
    assert after.code(IMPLEMENTATION)


def test_the_contract_keeps_the_milliseconds() -> None:
    evm = EVM("denim", state=with_base_time(proxy_state(), 1), timestamp=1_725)
    data = base_time_deposit(1, 800).data
    assert evm.call(BASE_TIME, data, sender=DEPOSITOR, commit=True).success
    assert evm.storage(BASE_TIME, 0) == 800
    assert int.from_bytes(evm.call(BASE_TIME, bytes.fromhex("5745a677")).output) == 1_725_800
    refused = evm.call(BASE_TIME, data, sender=bytes(20))
    assert refused.output == keccak256(b"BaseTime_NotDepositor()")[:4]


# The first blocks of Denim in a test of Base's proof client: block number, seconds, milliseconds,
# gas of the BaseTime deposit, state root. Each block has two deposits: the L1 attributes and
# BaseTime. The receipts of that test have only cumulative gas. The first deposit uses its whole gas
# limit of 150,000,000 there, because that chain charges deposits by the rules before Regolith.
# Source: base/base, the Denim range-proof fixture of `base-proof-client`.
PINNED_BLOCKS = [
    (2, 14, 0, 28_893, "ba6a62600c29055d63c307659c08d3eb76c25ddeedb4b661fb1d3388a76229f2"),
    (3, 14, 200, 48_805, "7306fab99637e9de714d44a513eb4b3af2202566eca94cedfe700dd484704591"),
    (4, 14, 400, 31_717, "212d35fadcda8b28ae7ca2be0ece495179d2a6ef29f989becfc454408b2f1849"),
    (5, 14, 600, 31_717, "fd510779f10c8d5cee46e036ecd37edee3731c8cb571c040d58bfadae190d985"),
    (6, 14, 800, 31_717, "945002226a61039964b2846bdaf18d9557ac543ab44c6f2d6fc763a36e27c411"),
    (7, 15, 0, 26_893, "f45693a95937020d3cefeac29b15afd840246d1b4321e737b615885ab32b37fe"),
]


def chain_proxy() -> bytes:
    """Returns the proxy code that Base's predeploys have, from the genesis of Base Sepolia."""
    with lzma.open((OP_STACK / "genesis/base-sepolia.json.xz").required) as file:
        accounts = json.load(file)["alloc"]
    code = hex_data(accounts[BASE_TIME.hex()]["code"])
    assert keccak256(code).hex().startswith("fa8c9db6c6cab710")
    return code


def test_the_first_blocks_of_denim_have_the_pinned_states_and_gas() -> None:
    layer = proxy_state(code=chain_proxy(), nonce=1)
    layer = layer.with_accounts({BASE_TIME[:-1] + b"\x16": {"nonce": 1}})
    for number, timestamp, part, gas, state_root in PINNED_BLOCKS:
        layer = with_base_time(layer, number)
        parent = header(number=number - 1, timestamp=timestamp - 1, base_fee_per_gas=1_000_000)
        draft = draft_header(parent, DENIM, timestamp=timestamp)
        builder = BlockBuilder(
            layer, draft, DENIM, chain_id=1, deposit_contract=bytes(20), withdrawals=()
        )
        builder.begin()
        first = builder.add(FIRST)
        second = builder.add(base_time_deposit(number, part))
        result = builder.finish()
        assert second.status == 1
        assert second.cumulative_gas_used - first.cumulative_gas_used == gas
        assert result.state_root.hex() == state_root
        layer = result.layer
