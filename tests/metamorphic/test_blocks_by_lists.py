"""Tests that parallel execution by access lists (EIP-7928) has the results of serial execution.

The blocks are random, and their access lists right or wrong.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastevm.chain.system_contracts import BUILDER_CONTRACTS, SYSTEM_CONTRACTS
from fastevm.core.execution.block.block import BlockBuilder, execute_block
from fastevm.core.execution.block.block_access_list import (
    AccountAccess,
    NumberChange,
    SlotChanges,
    decode_access_list,
    encode_access_list,
)
from fastevm.core.execution.parallel import bal_executor
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import EMPTY_LIST_HASH, Block, Withdrawal
from fastevm.core.primitives.replace import replace
from fastevm.core.spec.schedule import schedule_for
from fastevm.core.state.layer import Layer
from fastevm.errors import InvalidBlock, InvalidTransaction
from tests.differential.cases import Case, make_case
from tests.differential.machine import dump, state_of, unhexed, with_signatures
from tests.unit.core.state.remote_source import LayerSource

from .relations import NOBODY, header_of

FORK = "Amsterdam"
WITHDRAWALS = (Withdrawal(index=0, validator_index=0, address=b"\x77" * 20, amount=5),)

Accesses = list[AccountAccess]


def prepared(seed: int) -> tuple[Layer, Block]:
    """Returns a state with the system contracts, and a sealed block on it with its access list."""
    case = replace(make_case(seed, "BPO2"), fork=FORK)
    contracts = {**SYSTEM_CONTRACTS, **BUILDER_CONTRACTS}
    system: dict[str, Any] = {
        address: {"balance": 0, "nonce": 1, "code": item["code"], "storage": {}}
        for address, item in contracts.items()
    }
    layer = state_of({**case.pre, **system})
    header = replace(header_of(case), block_access_list_hash=EMPTY_LIST_HASH, slot_number=0)
    builder = BlockBuilder(
        layer, header, schedule_for(FORK), chain_id=1, deposit_contract=NOBODY,
        withdrawals=WITHDRAWALS,
    )  # fmt: skip
    builder.begin()
    add_valid(builder, case)
    return layer, builder.seal(state_root=False)[0]


def add_valid(builder: BlockBuilder, case: Case) -> None:
    for fields in with_signatures(case).transactions:
        try:
            builder.add(Transaction.decode(unhexed(fields["raw"])))
        except InvalidTransaction:
            continue


def outcome(layer: Layer, block: Block, threads: int) -> Any:
    """Returns the results of a block, or the reason for its rejection."""
    try:
        result = execute_block(
            layer, block, schedule_for(FORK), chain_id=1, deposit_contract=NOBODY, threads=threads
        )
    except InvalidBlock as error:
        return str(error)
    return (
        dump(result.layer), result.state_root, tuple(result.receipts), result.receipts_root,
        result.logs_bloom, result.gas_used, result.requests, result.access_list,
    )  # fmt: skip


@settings(max_examples=60)
@given(seed=st.integers(0, 2**48), threads=st.sampled_from([2, 4]))
def test_a_block_with_its_list_runs_by_it_once(seed: int, threads: int) -> None:
    layer, block = prepared(seed)
    before = bal_executor.counted()
    assert outcome(layer, block, threads) == outcome(layer, block, 1)
    assert bal_executor.counted() == before + (len(block.transactions) > 0)


def without(accesses: Accesses, at: int) -> Accesses:
    return accesses[:at] + accesses[at + 1 :]


def one_more(accesses: Accesses, at: int) -> Accesses:
    address = (int.from_bytes(accesses[at].address, "big") + 1) % 2**160
    found = {access.address: access for access in accesses}
    named = address.to_bytes(20, "big")
    found.setdefault(named, AccountAccess(named))
    return sorted(found.values())


def richer(accesses: Accesses, at: int) -> Accesses:
    item = accesses[at]
    changes = (*item.balance_changes[:-1], NumberChange(1, 10**30))
    return [*accesses[:at], item._replace(balance_changes=changes), *accesses[at + 1 :]]


def later(accesses: Accesses, at: int) -> Accesses:
    item = accesses[at]
    changes = tuple(NumberChange(change.at + 1, change.value) for change in item.nonce_changes)
    return [*accesses[:at], item._replace(nonce_changes=changes), *accesses[at + 1 :]]


def another_slot(accesses: Accesses, at: int) -> Accesses:
    item = accesses[at]
    kept = tuple(slot for slot in item.storage_changes if slot.key != 3)
    changed = SlotChanges(3, (NumberChange(1, 7),))
    slots = tuple(sorted((*kept, changed)))
    reads = tuple(key for key in item.storage_reads if key != 3)
    wrong = item._replace(storage_changes=slots, storage_reads=reads)
    return [*accesses[:at], wrong, *accesses[at + 1 :]]


def unread(accesses: Accesses, at: int) -> Accesses:
    return [*accesses[:at], accesses[at]._replace(storage_reads=()), *accesses[at + 1 :]]


def no_code(accesses: Accesses, at: int) -> Accesses:
    return [*accesses[:at], accesses[at]._replace(code_changes=()), *accesses[at + 1 :]]


@pytest.mark.parametrize(
    "change", [without, one_more, richer, later, another_slot, unread, no_code]
)
@settings(max_examples=20)
@given(seed=st.integers(0, 2**48), place=st.integers(0, 2**16))
def test_a_wrong_list_changes_nothing(
    change: Callable[[Accesses, int], Accesses], seed: int, place: int
) -> None:
    layer, block = prepared(seed)
    assert block.access_list is not None
    accesses = list(decode_access_list(block.access_list))
    wrong = encode_access_list(change(accesses, place % len(accesses)))
    before = bal_executor.counted()
    expected = outcome(layer, block, 1)
    assert outcome(layer, block.with_access_list(wrong), 2) == expected
    if wrong != block.access_list:
        assert bal_executor.counted() == before


@pytest.mark.parametrize("wrong", [b"", b"\xc0", b"\x80", b"\xc1\x80", b"\xc1\xc0", b"\xf8\x00"])
def test_what_is_no_list_changes_nothing(wrong: bytes) -> None:
    layer, block = prepared(7)
    assert outcome(layer, block.with_access_list(wrong), 2) == outcome(layer, block, 1)


@settings(max_examples=100)
@given(seed=st.integers(0, 2**20), data=st.data())
def test_any_bytes_are_read_as_by_the_plain_reader(seed: int, data: st.DataObject) -> None:
    encoded = bytearray(prepared(seed % 8)[1].access_list or b"")
    for _ in range(data.draw(st.integers(0, 2))):
        encoded[data.draw(st.integers(0, len(encoded) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = decode_access_list(bytes(encoded))
    except InvalidBlock:
        assert bal_executor.listed_items(bytes(encoded)) is None
    else:
        slots = sum(len(item.storage_changes) + len(item.storage_reads) for item in found)
        assert bal_executor.listed_items(bytes(encoded)) == len(found) + slots


def executed(layer: Layer, block: Block) -> Any:
    return execute_block(
        layer, block, schedule_for(FORK), chain_id=1, deposit_contract=NOBODY, state_root=False
    )


def requests_of(layer: Layer, block: Block) -> int:
    """Returns how many requests a block needs on a remote state.

    Asserts that its result is right.
    """
    source = LayerSource(layer)
    found = executed(Layer.remote(source), block)
    assert found.access_list == executed(layer, block).access_list
    return len(source.asked)


def test_what_a_list_names_comes_from_a_remote_state_in_one_request() -> None:
    counts: Counter[int] = Counter()
    for seed in range(40, 70):
        layer, block = prepared(seed)
        with_list = requests_of(layer, block)
        # Without a valid access list, the block is executed serially and fetches values one by one.
        without = requests_of(layer, block.with_access_list(None))
        assert requests_of(layer, block.with_access_list(b"\xc1\x80")) == without > with_list
        counts[with_list] += 1
    # A second request is needed only for an account that a call reads just before it runs out of
    # gas. No access list contains that account.
    assert max(counts) <= 2
    assert counts[1] > 2 * counts[2]
