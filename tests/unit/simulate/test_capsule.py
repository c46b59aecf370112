"""Capsules: the same outcomes from the touched state alone."""

import pytest

import fastevm
from fastevm import Layer
from fastevm.simulate import SimulateOptions, make_capsule, open_capsule, simulate_v1, view_of
from fastevm.wire.simulate_values import payload_from

A, B, C, UNTOUCHED = (byte * 20 for byte in (b"\xa1", b"\xb0", b"\xc0", b"\xdd"))
STATE = Layer.of(
    {
        A: {"balance": 10**20},
        # adds its input to slot 0, returns the sum
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
