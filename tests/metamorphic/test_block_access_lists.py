"""Tests the block access lists (EIP-7928) of random blocks.

The changes in the list must give the post-state, and the block must read nothing that the list
omits.
"""

from collections.abc import Container, Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fastevm.core.execution.block.block import BlockBuilder
from fastevm.core.execution.block.block_access_list import AccessList, decode_access_list
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import EMPTY_LIST_HASH
from fastevm.core.primitives.replace import replace
from fastevm.core.spec.schedule import schedule_for
from fastevm.core.state.layer import Layer
from fastevm.errors import InvalidTransaction
from tests.differential.cases import Case, make_case
from tests.differential.machine import dump, state_of, unhexed, with_signatures

from .relations import NOBODY, header_of

FORK = "Amsterdam"
EMPTY = {"balance": 0, "nonce": 0, "code": b"", "storage": {}}

Accounts = dict[bytes, dict[str, Any]]


def block_case(seed: int) -> Case:
    """Returns a random case of the fork before Amsterdam, to run under the rules of Amsterdam."""
    return replace(make_case(seed, "BPO2"), fork=FORK)


def built(
    case: Case, layer: Layer, *, without: Container[int] = ()
) -> tuple[list[Any], bytes, Layer]:
    """Builds one block of the case's transactions.

    Returns the transactions' outcomes, the block access list, and the state after the block.
    ``without``: positions of transactions to leave out.
    """
    header = replace(header_of(case), block_access_list_hash=EMPTY_LIST_HASH, slot_number=0)
    builder = BlockBuilder(layer, header, schedule_for(FORK), chain_id=1, deposit_contract=NOBODY)
    builder.begin()
    done: list[Any] = []
    for position, fields in enumerate(with_signatures(case).transactions):
        if position in without:
            continue
        try:
            done.append(builder.add(Transaction.decode(unhexed(fields["raw"]))))
        except InvalidTransaction as refusal:
            done.append(str(refusal))
    encoded = builder.access_list()
    assert encoded is not None
    return done, encoded, builder.snapshot()


def accounts_of(layer: Layer) -> Accounts:
    """Returns all accounts of a layer that are not empty."""
    found = {}
    for address in layer.addresses():
        account = {
            "balance": layer.balance(address),
            "nonce": layer.nonce(address),
            "code": layer.code(address),
            "storage": layer.storage_items(address),
        }
        if account != EMPTY:
            found[address] = account
    return found


def after(before: Mapping[bytes, Mapping[str, Any]], accesses: AccessList) -> Accounts:
    """Applies the last change of each value in the access list. Returns the resulting accounts."""
    found = {address: dict(account) for address, account in before.items()}
    for access in accesses:
        account = dict(found.get(access.address, EMPTY))
        storage = dict(account["storage"])
        for name in ("balance", "nonce", "code"):
            changes = getattr(access, f"{name}_changes")
            if changes:
                account[name] = changes[-1][1]
        for key, changes in access.storage_changes:
            storage[key] = changes[-1].value
        account["storage"] = {key: value for key, value in storage.items() if value}
        found[access.address] = account
    return {address: account for address, account in found.items() if account != EMPTY}


def only(before: Accounts, accesses: AccessList) -> Layer:
    """Returns a state with only those accounts and slots that the access list names."""
    slots = {
        access.address: {*access.storage_reads, *(slot.key for slot in access.storage_changes)}
        for access in accesses
    }
    kept = {}
    for address, account in before.items():
        if address in slots:
            storage = account["storage"].items()
            listed = {key: value for key, value in storage if key in slots[address]}
            kept[address] = {**account, "storage": listed}
    return Layer.of(kept)


@settings(max_examples=60)
@given(seed=st.integers(0, 2**48))
def test_the_changes_of_the_list_make_the_state_after_the_block(seed: int) -> None:
    case = block_case(seed)
    layer = state_of(case.pre)
    _, encoded, found = built(case, layer)
    assert after(accounts_of(layer), decode_access_list(encoded)) == accounts_of(found)


@settings(max_examples=60)
@given(seed=st.integers(0, 2**48))
def test_what_is_not_in_the_list_does_not_matter_to_the_block(seed: int) -> None:
    case = block_case(seed)
    layer = state_of(case.pre)
    done, encoded, _ = built(case, layer)
    part = only(accounts_of(layer), decode_access_list(encoded))
    refused = [position for position, item in enumerate(done) if isinstance(item, str)]
    accepted = [item for item in done if not isinstance(item, str)]
    assert built(case, part, without=refused)[:2] == (accepted, encoded)


@settings(max_examples=20)
@given(seed=st.integers(0, 2**48))
def test_a_block_that_is_built_twice_has_one_list(seed: int) -> None:
    case = block_case(seed)
    first, second = (built(case, state_of(case.pre)) for _ in range(2))
    assert first[:2] == second[:2]
    assert dump(first[2]) == dump(second[2])
