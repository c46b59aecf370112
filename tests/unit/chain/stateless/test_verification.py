"""Tests that invalid blocks and witnesses are rejected with an error message."""

from __future__ import annotations

import random
from typing import Any

import pytest

from fastevm.chain.stateless import Witness, WitnessError, verify, witness
from fastevm.chain.stateless.partial_trie import PartialTrie
from fastevm.chain.stateless.witness_state import EMPTY_CODE_HASH, WitnessState
from fastevm.core.execution.types import Block
from fastevm.core.primitives import rlp
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.primitives.replace import replace
from fastevm.core.trie.proof import EMPTY_ROOT
from fastevm.core.trie.trie import Trie
from fastevm.errors import InvalidBlock
from tests.unit.chain.blocks import RECIPIENT, payment

from .chains import OLD_HASH, SIZER, WRITER, Sample, call, sample

SEED = 0x57A7E
MUTATIONS = 400
ADDRESS = b"\x01" * 20


@pytest.fixture(scope="module")
def block() -> Sample:
    """Provides a block that pays, writes, deletes, and reads code and an old block's hash."""
    transactions = [
        payment(0),
        call(1, WRITER, 0, 3),
        call(2, WRITER, 5, 77),
        call(3, OLD_HASH, 2),
        call(4, SIZER, WRITER),
    ]
    return sample(transactions, blocks=5)


@pytest.mark.parametrize(
    "changes",
    [
        {"state_root": b"\x01" * 32},
        {"receipts_root": b"\x01" * 32},
        {"gas_used": 21_000},
        {"logs_bloom": b"\x01" * 256},
        {"requests_hash": b"\x01" * 32},
        {"transactions_root": b"\x01" * 32},
        {"withdrawals_root": b"\x01" * 32},
        {"base_fee_per_gas": 1},
        {"number": 3},
        {"timestamp": 1},
        {"gas_limit": 1},
        {"extra_data": bytes(33)},
        {"difficulty": 7},
        {"blob_gas_used": None},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_header_that_claims_something_else_is_refused(
    block: Sample, changes: dict[str, Any]
) -> None:
    given = block.block
    header = replace(given.header, **changes)
    other = Block(header, given.transactions, given.ommers, given.withdrawals)
    with pytest.raises(InvalidBlock):
        verify(other, block.witness, block.chain.config)


def test_a_transaction_that_is_not_valid_is_refused(block: Sample) -> None:
    given = block.block
    other = Block(given.header, given.transactions[1:], given.ommers, given.withdrawals)
    with pytest.raises(InvalidBlock, match="transactions_root"):
        verify(other, block.witness, block.chain.config)


def test_without_its_parent_a_block_is_refused(block: Sample) -> None:
    bare = replace(block.witness, headers=())
    with pytest.raises(WitnessError, match="headers: the parent 0x"):
        verify(block.block, bare, block.chain.config)
    strange = replace(block.witness, headers=(*block.witness.headers, block.block.header.rlp()))
    with pytest.raises(WitnessError, match="is not linked to the parent"):
        verify(block.block, strange, block.chain.config)
    for garbage in (b"", b"\x80", b"\xc0", b"\xf9\xff", b"\xc1" * 600):
        broken = replace(block.witness, headers=(garbage,))
        with pytest.raises(WitnessError, match=r"headers\[0\]"):
            verify(block.block, broken, block.chain.config)


def test_every_mutation_is_refused_with_words(block: Sample) -> None:
    rng = random.Random(SEED)
    for _ in range(MUTATIONS):
        member = rng.choice(("state", "state", "codes", "headers"))
        items = list(getattr(block.witness, member))
        at = rng.randrange(len(items))
        mutated = bytearray(items[at])
        mutated[rng.randrange(len(mutated))] ^= 1 << rng.randrange(8)
        items[at] = rng.choice((bytes(mutated), b"", items[at][:-1], rng.choice(items) + b"\x00"))
        other = replace(block.witness, **{member: tuple(items)})
        with pytest.raises((WitnessError, InvalidBlock)) as caught:
            verify(block.block, other, block.chain.config)
        assert str(caught.value)


# --- malformed states -----------------------------------------------------------------------------


def state_with(leaf: bytes, *nodes: bytes) -> WitnessState:
    """Returns a state with one account, encoded as ``leaf``. ``nodes``: further trie nodes."""
    trie = Trie()
    trie.put(keccak256(ADDRESS), leaf)
    found = (*trie.prove(keccak256(ADDRESS)), *nodes)
    return WitnessState(trie.root(), found, (), block_number=1, block_hash=bytes(32))


def leaf_of(**changes: Any) -> bytes:
    fields = {"nonce": b"\x01", "balance": b"\x05", "root": EMPTY_ROOT, "code": EMPTY_CODE_HASH}
    return rlp.encode(list((fields | changes).values()))


@pytest.mark.parametrize(
    "leaf",
    [
        b"\x05",
        rlp.encode([]),
        rlp.encode([b""] * 5),
        leaf_of(nonce=b"\x00\x01"),
        leaf_of(nonce=b"\x01" * 9),
        leaf_of(nonce=[]),
        leaf_of(balance=b"\x01" * 33),
        leaf_of(root=b"\x01" * 31),
        leaf_of(code=[b"\x01" * 32]),
        leaf_of() + b"\x00",
        b"\xf8\xff",
    ],
)
def test_a_leaf_that_is_no_account_is_refused(leaf: bytes) -> None:
    with pytest.raises(WitnessError, match="account 0x"):
        state_with(leaf).stored(ADDRESS)


@pytest.mark.parametrize("value", [b"\x80", b"\x00", b"\xa1" + b"\x01" * 33, b"\xc0", b"\x81"])
def test_a_leaf_that_is_no_slot_is_refused(value: bytes) -> None:
    storage = Trie()
    key = keccak256(bytes(32))
    storage.put(key, value)
    state = state_with(leaf_of(root=storage.root()), *storage.prove(key))
    with pytest.raises(WitnessError, match="slot 0x0 of 0x"):
        state.slot(ADDRESS, 0)


def test_a_storage_root_may_name_any_trie_of_the_pool() -> None:
    account = Trie()
    account.put(keccak256(bytes(32)), leaf_of())
    state = state_with(leaf_of(root=account.root()), *account.prove(keccak256(bytes(32))))
    with pytest.raises(WitnessError, match="value is no number"):
        state.slot(ADDRESS, 0)


def test_an_absent_account_is_proved_absent(block: Sample) -> None:
    assert state_with(leaf_of()).stored(RECIPIENT) is None
    assert PartialTrie(EMPTY_ROOT, {}).get(bytes(32)) is None


# --- sizes and forms ------------------------------------------------------------------------------


def test_every_list_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WitnessError, match=r"headers: 257 items, over 256"):
        Witness((), headers=(b"",) * 257)
    with pytest.raises(WitnessError, match=r"state\[1\]: 1025 bytes, over 1024"):
        Witness((b"", bytes(1025)))
    with pytest.raises(WitnessError, match=r"codes\[0\]: 1048577 bytes, over 1048576"):
        Witness((), (bytes(1 << 20 | 1),))
    with pytest.raises(WitnessError, match=r"keys\[0\]: 53 bytes, over 52"):
        Witness((), (), (bytes(53),))
    monkeypatch.setattr(witness, "MAX_WITNESS_BYTES", 100)
    with pytest.raises(WitnessError, match="101 bytes, over 100"):
        Witness((bytes(50), bytes(51)))


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (None, "a witness is an object"),
        ([], "a witness is an object"),
        ({"state": "0x00", "headers": []}, "state: expected a list"),
        ({"state": [], "headers": None}, "headers: expected a list"),
        ({"state": ["0xzz"], "headers": []}, r"state\[0\]"),
        ({"state": [], "codes": [7], "headers": []}, r"codes\[0\]"),
        ({"state": [], "headers": ["0x0"]}, r"headers\[0\]"),
        ({"state": [], "headers": ["0x"] * 257}, "headers: 257 items"),
    ],
)
def test_json_that_is_no_witness_is_refused(found: Any, words: str) -> None:
    with pytest.raises(WitnessError, match=words):
        Witness.from_json(found)


def test_codes_and_keys_may_be_left_out_of_json() -> None:
    found = Witness.from_json({"state": ["0xc0"], "headers": ["0x01"]})
    assert found == Witness((b"\xc0",), (), (), (b"\x01",))
