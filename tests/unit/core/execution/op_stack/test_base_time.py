"""BaseTime: the deposit with the milliseconds, its contract, and the rules for blocks."""

from __future__ import annotations

from typing import Any

import pytest

from fastevm import EVM
from fastevm.chain.irregular_changes import state_before
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

# Block number, milliseconds, encoded deposit.
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
# An ERC-1967 proxy that delegates everything to its implementation.
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
        base_time_deposit(10, 200),  # of another block
        base_time_deposit(9, 100),
        base_time_deposit(9, 1000),
        other_deposit(data=base_time_deposit(9, 200).data),  # another source hash
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
