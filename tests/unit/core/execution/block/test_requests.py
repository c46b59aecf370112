"""Tests requests to the consensus layer: deposits in logs, and the requests hash."""

from hashlib import sha256

import pytest
from eth_abi import encode

from fastevm.core.execution.block.requests import (
    DEPOSIT_TOPIC,
    collected,
    deposit_requests,
    requests_hash,
)
from fastevm.core.execution.types import Log

PARTS = (b"\x01" * 48, b"\x02" * 32, b"\x03" * 8, b"\x04" * 96, b"\x05" * 8)
EVENT = encode(["bytes"] * 5, PARTS)


def log(data=EVENT, topics=(DEPOSIT_TOPIC,)):
    return Log(bytes(20), topics, data)


def test_the_topic_is_that_of_the_deposit_contract():
    assert DEPOSIT_TOPIC.hex().startswith("649bbc62d0e31342afea4e5cd82d4049e7e1ee91")


def test_a_deposit_is_its_five_parts_in_a_row():
    assert deposit_requests([log(), log()]) == b"".join(PARTS) * 2


def test_other_events_of_the_contract_are_no_deposits():
    assert deposit_requests([log(topics=()), log(topics=(bytes(32),))]) == b""


@pytest.mark.parametrize("data", [b"", EVENT[:-1], EVENT + bytes(32)])
def test_an_event_of_another_size_is_refused(data):
    with pytest.raises(ValueError, match="bytes, not 576"):
        deposit_requests([log(data)])


@pytest.mark.parametrize("word", [0, 1, 2, 3, 4, 5, 8, 10, 12, 16])
def test_an_offset_or_a_length_that_differs_is_refused(word):
    data = bytearray(EVENT)
    data[32 * word + 31] ^= 1
    with pytest.raises(ValueError, match="of a deposit event"):
        deposit_requests([log(bytes(data))])


def test_requests_without_data_are_left_out():
    assert collected([(0, b""), (1, b"x"), (2, b"")]) == (b"\x01x",)


def test_the_hash_of_no_requests_is_that_of_nothing():
    assert requests_hash(()) == sha256().digest()


def test_the_hash_is_over_the_hashes():
    inner = sha256(b"\x00a").digest() + sha256(b"\x02b").digest()
    assert requests_hash([b"\x00a", b"\x02b"]) == sha256(inner).digest()
