"""Tests headers and blocks as RLP against an independent encoder."""

import pytest
import rlp
from hypothesis import given, settings
from hypothesis import strategies as st

from fastevm.chain.storage.block_record import block_of, hashes_of, pack_body
from fastevm.core.execution.block.block_decoding import decode_block
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import (
    HEADER_FIELDS,
    HEADER_SIZES,
    Block,
    Header,
    Log,
    Receipt,
    Withdrawal,
)
from fastevm.core.primitives.replace import replace
from fastevm.errors import InvalidBlock

LEGACY = Transaction.build(gas_price=7, gas_limit=21_000, to=bytes(20), v=27, r=1, s=1)
TYPED = Transaction.build(type=2, max_fee_per_gas=9, gas_limit=21_000, to=bytes(20), r=1, s=1)


def header_of(size, draw_int=lambda bits: 5, draw_bytes=lambda n: b"\x07" * n):
    values = {}
    for name, kind, width, *_ in HEADER_FIELDS[:size]:
        if kind == "int":
            values[name] = draw_int(width * 8)
        else:
            values[name] = draw_bytes(width if kind == "bytes" else 9)
    return Header(**values)


@st.composite
def headers(draw):
    size = draw(st.sampled_from(HEADER_SIZES))
    return header_of(
        size,
        lambda bits: draw(st.integers(0, 2**bits - 1)),
        lambda n: draw(st.binary(min_size=n, max_size=n)),
    )


def items_of(header):
    return rlp.decode(header.rlp())


def failing(raw, number=None):
    with pytest.raises(InvalidBlock) as caught:
        decode_block(raw, number=number)
    return caught.value


@settings(max_examples=50)
@given(headers())
def test_a_header_survives_the_way_to_rlp_and_back(header):
    again = Header.decode(header.rlp())
    assert again == header
    assert again.hash == header.hash


@settings(max_examples=50)
@given(headers(), st.integers(0, 3))
def test_the_header_in_a_block_is_found_without_decoding_the_block(header, count):
    packed = pack_body(Block(header, (TYPED,) * count, ()), ())
    assert hashes_of(packed) == (header.hash, header.parent_hash)
    decoded = block_of(packed).header
    assert decoded.rlp() == replace(decoded).rlp() == header.rlp()


@settings(max_examples=50)
@given(headers())
def test_a_header_encodes_as_the_rlp_library_does(header):
    fields = [getattr(header, row.name) for row in HEADER_FIELDS]
    fields = [rlp.sedes.big_endian_int.serialize(v) if isinstance(v, int) else v for v in fields]
    assert header.rlp() == rlp.encode([v for v in fields if v is not None])


def test_a_header_with_a_gap_between_eras_cannot_be_encoded():
    with pytest.raises(ValueError, match="base_fee_per_gas"):
        Header(withdrawals_root=bytes(32)).rlp()


@pytest.mark.parametrize("count", [14, 18, 19, 22])
def test_only_the_field_counts_of_the_eras_are_headers(count):
    items = [*items_of(header_of(21)), b"\x01"][:count]
    error = failing(rlp.encode([items, [], []]))
    assert (error.field, error.found) == ("header", f"{count} fields")


@pytest.mark.parametrize(("index", "name"), [(0, "parent_hash"), (2, "coinbase"), (14, "nonce")])
@pytest.mark.parametrize("change", [lambda b: b[:-1], lambda b: b + b"\x01", lambda b: b""])
def test_a_field_of_another_size_is_named(index, name, change):
    items = items_of(header_of(15))
    items[index] = change(items[index])
    error = failing(rlp.encode([items, [], []]))
    assert (error.number, error.field) == (5, name)
    assert error.expected == f"{len(items_of(header_of(15))[index])} bytes"


@pytest.mark.parametrize("value", [b"\x00", b"\x00\x01", b"\x01" * 9])
def test_an_integer_must_be_canonical_and_fit(value):
    items = items_of(header_of(15))
    items[9] = value
    assert failing(rlp.encode([items, [], []])).field == "gas_limit"


def test_a_list_in_place_of_a_field_is_refused():
    items = items_of(header_of(15))
    items[6] = [b""]
    assert failing(rlp.encode([items, [], []])).field == "logs_bloom"


def test_the_number_is_the_caller_s_when_the_block_s_own_cannot_be_read():
    items = items_of(header_of(15))
    items[8] = b"\x01" * 9
    assert failing(rlp.encode([items, [], []]), number=77).number == 77
    assert failing(b"\xc1", number=77).number == 77


@pytest.mark.parametrize("body", [[], [[]], [[], [], [], []]])
def test_a_block_has_three_or_four_parts(body):
    assert failing(rlp.encode([items_of(header_of(15)), *body])).field == "rlp"


@pytest.mark.parametrize("position", [1, 2, 3])
def test_the_parts_of_a_body_are_lists(position):
    parts = [items_of(header_of(17)), [], [], []]
    parts[position] = b"\x01"
    assert failing(rlp.encode(parts)).found == "a byte string"


def test_bytes_behind_the_block_are_refused():
    assert failing(Block(header_of(15)).rlp() + b"\x00").field == "rlp"


def test_a_block_survives_the_way_to_rlp_and_back():
    block = Block(
        header_of(17),
        (LEGACY, TYPED),
        (header_of(15), header_of(16)),
        (Withdrawal(1, 2, b"\x03" * 20, 4),),
    )
    again = decode_block(block.rlp())
    assert again == block
    assert again.size == len(block.rlp())
    assert rlp.decode(block.rlp())[1] == [rlp.decode(LEGACY.raw), TYPED.raw]


def test_a_legacy_transaction_wrapped_in_a_string_is_refused():
    error = failing(rlp.encode([items_of(header_of(15)), [LEGACY.raw], []]))
    assert error.field == "transactions[0]"


@pytest.mark.parametrize("item", [b"", b"\x02", b"\x05\xc0", [b"\x01"]])
def test_what_is_no_transaction_is_named(item):
    error = failing(rlp.encode([items_of(header_of(15)), [TYPED.raw, item], []]))
    assert (error.number, error.field) == (5, "transactions[1]")


def test_a_withdrawal_has_four_fields():
    error = failing(rlp.encode([items_of(header_of(17)), [], [], [[b"\x01"] * 3]]))
    assert (error.field, error.found) == ("withdrawals[0]", "3 fields")


def test_a_withdrawal_s_amount_fits_64_bits():
    item = [b"\x01", b"\x01", bytes(20), b"\x01" * 9]
    error = failing(rlp.encode([items_of(header_of(17)), [], [], [item]]))
    assert error.field == "withdrawals[0].amount"


@pytest.mark.parametrize(("kind", "prefix"), [(0, b""), (3, b"\x03")])
def test_a_receipt_encodes_with_its_type_before_it(kind, prefix):
    log = Log(b"\x01" * 20, (b"\x02" * 32,), b"\x03\x04")
    receipt = Receipt(
        tx_type=kind,
        status=1,
        post_state=None,
        cumulative_gas_used=300,
        logs=(log,),
        bloom=bytes(256),
        gas_used=100,
        effective_gas_price=1,
    )
    logs = [[log.address, list(log.topics), log.data]]
    assert receipt.rlp() == prefix + rlp.encode([b"\x01", 300, bytes(256), logs])


def test_a_receipt_before_byzantium_holds_a_root():
    receipt = Receipt(
        tx_type=0,
        status=None,
        post_state=b"\x09" * 32,
        cumulative_gas_used=0,
        logs=(),
        bloom=bytes(256),
        gas_used=0,
        effective_gas_price=0,
    )
    assert rlp.decode(receipt.rlp())[0] == b"\x09" * 32
