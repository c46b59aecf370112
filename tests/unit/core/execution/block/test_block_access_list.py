"""Tests block access lists: RLP, every malformed list, and the error for a list that differs."""

from __future__ import annotations

from typing import Any

import pytest

from fastevm.core.execution.block.block_access_list import (
    AccountAccess,
    CodeChange,
    NumberChange,
    SlotChanges,
    access_list_hash,
    check_access_list,
    decode_access_list,
    encode_access_list,
    item_count,
)
from fastevm.core.primitives import rlp
from fastevm.errors import InvalidBlock

FIRST, SECOND = b"\x01" * 20, b"\x02" * 20
FULL = AccountAccess(
    FIRST,
    (
        SlotChanges(1, (NumberChange(0, 5), NumberChange(3, 0))),
        SlotChanges(7, (NumberChange(1, 1),)),
    ),
    (2, 2**256 - 1),
    (NumberChange(1, 2**70),),
    (NumberChange(2, 1),),
    (CodeChange(2, b"\x60\x00"), CodeChange(4, b"")),
)
SYSTEM_CALLS = bytes.fromhex(
    "f8a4de9400000961ef480eb55e80d19ad83579a64c007002c0c480010203c0c0c0de940000bbddc7ce488642fb579f8b"
    "00f3a590007251c0c480010203c0c0c0f840940000f90827f1c53a10cb7a02335b175320002935e6e580e3e280a074b7"
    "ed2578c9fce03ba88430ff756714d71742d1392b142e6625c58147e67641c0c0c0c0e394000f3df6d732807ef1319fb7"
    "b8bb8522d0beac02c6c50cc3c2800cc382200bc0c0c0"
)
# The six fields of a valid account entry. Each case below replaces one field.
RIGHT: list[Any] = [FIRST, [], [], [], [], []]


def test_a_list_that_is_read_and_written_again_keeps_every_value() -> None:
    accesses = (FULL, AccountAccess(SECOND))
    assert decode_access_list(encode_access_list(accesses)) == accesses


def test_the_list_of_a_block_of_system_calls_has_four_contracts_and_its_known_hash() -> None:
    accesses = decode_access_list(SYSTEM_CALLS)
    assert [access.address[-2:].hex() for access in accesses] == ["7002", "7251", "2935", "ac02"]
    assert item_count(accesses) == 15
    assert encode_access_list(accesses) == SYSTEM_CALLS
    assert access_list_hash(SYSTEM_CALLS).hex() == (
        "3b55bd99e7cf3ab64538c4ba9e2909a0bf362003d2430a145bff697a71ec9d7d"
    )


def test_items_are_addresses_and_the_different_slots_of_each() -> None:
    assert item_count((FULL, AccountAccess(SECOND))) == 2 + 4


@pytest.mark.parametrize(
    ("items", "words"),
    [
        (b"", "block_access_list: expected a list, found a byte string"),
        ([b""], "block_access_list[0]: expected a list, found a byte string"),
        ([[FIRST]], "block_access_list[0]: expected 6 fields, found 1 fields"),
        ([[b"\x01", *RIGHT[1:]]], "block_access_list[0].address: expected 20 bytes"),
        ([RIGHT, RIGHT], "block_access_list[1]: expected more than the one before"),
        ([[SECOND, *RIGHT[1:]], RIGHT], "block_access_list[1]: expected more than"),
        ([[FIRST, [], [b"\x02", b"\x01"], [], [], []]], "storage_reads[1]: expected more than"),
        ([[FIRST, [], [b"\x00"], [], [], []]], "storage_reads[0]: expected an integer without"),
        ([[FIRST, [], [b"\x01" * 33], [], [], []]], "storage_reads[0]: expected an integer of"),
        ([[FIRST, [[b"\x01", []]], [], [], [], []]], "storage_changes[0].changes: expected a"),
        (
            [[FIRST, [[b"\x01", [[b"\x01", b""]]]], [b"\x01"], [], [], []]],
            "storage_reads: expected no slot that is changed, found 0x1",
        ),
        (
            [[FIRST, [[b"\x02", [[b"", b""]]], [b"\x01", [[b"", b""]]]], [], [], [], []]],
            "storage_changes[1]: expected more than",
        ),
        ([[FIRST, [], [], [[b"\x02", b""], [b"\x02", b""]], [], []]], "balance_changes[1]"),
        ([[FIRST, [], [], [], [[b"\x01" * 5, b""]], []]], "nonce_changes[0].index"),
        ([[FIRST, [], [], [], [[b"", b"\x01" * 9]], []]], "nonce_changes[0].value"),
        ([[FIRST, [], [], [], [], [[b"\x01", []]]]], "code_changes[0].code: expected a byte"),
        ([[FIRST, [], [], [], [], [[b"\x01"]]]], "code_changes[0]: expected 2 fields"),
    ],
)
def test_a_wrong_form_is_named(items: Any, words: str) -> None:
    with pytest.raises(InvalidBlock) as refused:
        decode_access_list(rlp.encode(items), 9)
    assert words in str(refused.value)
    assert str(refused.value).startswith("block 9: block_access_list")


def test_bytes_that_are_no_rlp_are_refused() -> None:
    with pytest.raises(InvalidBlock, match="canonical RLP"):
        decode_access_list(SYSTEM_CALLS + b"\x00")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((), "[0x0101010101010101010101010101010101010101]: expected the account, found no such"),
        (
            (FULL, AccountAccess(SECOND)),
            "[0x0202020202020202020202020202020202020202]: expected no",
        ),
        (
            (FULL._replace(storage_reads=(2,)),),
            f".storage[{2**256 - 1:#x}]: expected a read, found no access",
        ),
        ((FULL._replace(storage_reads=(2, 3, 2**256 - 1)),), ".storage[0x3]: expected no access"),
        (
            (FULL._replace(storage_changes=FULL.storage_changes[:1]),),
            ".storage[0x7]: expected changes 1: 0x1, found no access",
        ),
        (
            (FULL._replace(balance_changes=(NumberChange(1, 3),)),),
            f".balance[1]: expected {2**70}, found 3",
        ),
        ((FULL._replace(nonce_changes=()),), ".nonce[2]: expected 1, found no change"),
        ((FULL._replace(code_changes=FULL.code_changes[:1]),), ".code[4]: expected"),
    ],
)
def test_a_difference_is_reported_with_its_account_and_its_slot_or_index(
    given: tuple[AccountAccess, ...], words: str
) -> None:
    with pytest.raises(InvalidBlock) as refused:
        check_access_list(4, given, encode_access_list((FULL,)))
    assert words in str(refused.value)


def test_a_list_that_is_the_executed_one_passes() -> None:
    check_access_list(4, (FULL,), encode_access_list((FULL,)))
