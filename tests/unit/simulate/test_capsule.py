"""Tests capsules: files with a payload and only the state that it accesses."""

import base64
import json
import random
import struct
import zlib
from contextlib import suppress
from typing import Any

import pytest

import fastevm
from fastevm import Layer
from fastevm.core.state.shipping import MAGIC
from fastevm.rpc_types.simulate_request import payload_from
from fastevm.simulate import SimulateOptions, make_capsule, open_capsule, simulate_v1, view_of
from fastevm.simulate.batch.repro import STATE_LIMIT

A, B, C, UNTOUCHED = (byte * 20 for byte in (b"\xa1", b"\xb0", b"\xc0", b"\xdd"))
STATE = Layer.of(
    {
        A: {"balance": 10**20},
        # adds its input to slot 0 and returns the sum
        C: {"code": bytes.fromhex("5f355f5401805f555f5260205ff3"), "storage": {0: 40, 1: 50}},
        UNTOUCHED: {"balance": 7, "code": b"\x00" * 1000},
    }
)
OPTIONS = SimulateOptions(zero_state_root=True, block_spacing=12)
INPUT = "0x" + "00" * 31 + "02"
PAYLOAD = {
    "blockStateCalls": [
        {"calls": [{"from": "0x" + A.hex(), "to": "0x" + C.hex(), "data": INPUT}]},
        {"calls": [{"from": "0x" + A.hex(), "to": "0x" + B.hex(), "value": "0x5"}]},
    ]
}  # fmt: skip


def test_a_capsule_runs_again_bit_for_bit() -> None:
    capsule, blocks = make_capsule(view_of(STATE, number=99, timestamp=1000), PAYLOAD, OPTIONS)
    view, payload, options = open_capsule(capsule)
    again = simulate_v1(view, payload_from(payload), options)
    assert [block.block.hash for block in again] == [block.block.hash for block in blocks]
    assert [block.calls for block in again] == [block.calls for block in blocks]
    assert int.from_bytes(again[0].calls[0].output, "big") == 42


def test_a_capsule_holds_what_was_touched_and_no_more() -> None:
    capsule, _ = make_capsule(view_of(STATE), PAYLOAD, OPTIONS)
    view, _, _ = open_capsule(capsule)
    assert view.layer.account(UNTOUCHED) is None
    assert view.layer.storage_items(C) == {0: 40}
    assert len(capsule) < 4_000


def test_another_payload_may_be_tried_on_it() -> None:
    capsule, _ = make_capsule(view_of(STATE), PAYLOAD, OPTIONS)
    view, _, _ = open_capsule(capsule)
    (block,) = fastevm.simulate(view, [{"from": A, "to": C, "data": (9).to_bytes(32, "big")}])
    assert int.from_bytes(block.calls[0].output, "big") == 49


@pytest.mark.parametrize("damage", [b"", b"{}", b"[]", b'{"format":"other"}', b"\xff"])
def test_other_bytes_are_refused(damage: bytes) -> None:
    with pytest.raises(ValueError):
        open_capsule(damage)


def changed(**fields: Any) -> bytes:
    """Returns a capsule with changed members."""
    capsule, _ = make_capsule(view_of(STATE), PAYLOAD, OPTIONS)
    return json.dumps(json.loads(capsule) | fields).encode()


HOSTILE = (None, [], {}, "", "0x", "zz", -1, 2**64, 2**300, 1e400, True, [None], {"a": 1}, "\ud800")


@pytest.mark.parametrize(
    "member",
    ["options", "header", "blockHash", "fork", "blobs", "state", "format", "chainId",
     "blockTimeMs", "depositContract"],
)  # fmt: skip
def test_a_member_of_another_kind_is_refused(member: str) -> None:
    fits = {"chainId": [True], "blockTimeMs": [True], "blobs": [None]}.get(member, [])
    for value in HOSTILE:
        if value not in fits:
            with pytest.raises(ValueError):
                open_capsule(changed(**{member: value}))


def test_damaged_bytes_give_no_other_error_than_value_error() -> None:
    source = random.Random(5)
    capsule = changed()
    for _ in range(500):
        damaged = bytearray(capsule)
        for _ in range(source.randrange(1, 4)):
            damaged[source.randrange(len(damaged))] = source.randrange(256)
        with suppress(ValueError):
            open_capsule(bytes(damaged[: source.choice((len(damaged), len(damaged) // 2))]))


def packed(body: bytes) -> str:
    return base64.b64encode(MAGIC + zlib.compress(body)).decode()


def test_a_state_that_unpacks_beyond_its_limit_is_refused() -> None:
    with pytest.raises(ValueError, match="more than"):
        open_capsule(changed(state=packed(bytes(STATE_LIMIT + 1))))


def test_code_that_many_accounts_share_counts_for_each() -> None:
    size = STATE_LIMIT // 64
    code = struct.pack(">II", 1, size) + bytes(size)
    accounts = b"".join(n.to_bytes(20, "big") + bytes(32 + 8 + 4 + 4) for n in range(1, 100))
    with pytest.raises(ValueError, match="code of all accounts"):
        open_capsule(changed(state=packed(code + accounts)))
