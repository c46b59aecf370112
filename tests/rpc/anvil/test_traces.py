"""Tests that trace_* returns exactly what anvil returns."""

from typing import Any

import pytest

from .scenario import SENDER, Side, without

HASHES = frozenset(("blockHash", "transactionHash"))
SENT = (
    "caller", "calls", "reverted", "halted", "transfer", "destroyed", "short life", "no contract",
    "refused contract",
)  # fmt: skip


@pytest.mark.parametrize("name", SENT)
def test_a_transaction_has_the_frames_of_anvil(ours: Side, anvil: Side, name: str) -> None:
    found = ours.result("trace_transaction", ours.hash(name))
    wanted = anvil.result("trace_transaction", anvil.hash(name))
    assert without(found, HASHES) == without(wanted, HASHES)
    for frame in found:
        receipt = ours.receipts[name]
        assert frame["transactionHash"] == receipt["transactionHash"]
        assert frame["blockHash"] == receipt["blockHash"]


def test_calls_of_precompiles_are_left_out(ours: Side) -> None:
    """anvil shows calls to precompiles, but Parity, Erigon, reth and go-ethereum do not."""
    (frame,) = ours.result("trace_transaction", ours.hash("precompile"))
    assert (frame["subtraces"], frame["traceAddress"]) == (0, [])


@pytest.mark.parametrize("block", ["calls", "latest", "0x0", "0xffff"])
def test_a_block_has_the_frames_of_anvil(ours: Side, anvil: Side, block: str) -> None:
    found, wanted = (
        side.result("trace_block", side.block(block) if block in side.receipts else block)
        for side in (ours, anvil)
    )
    assert without(found, HASHES) == without(wanted, HASHES)


def test_unknown_transactions_have_no_frames(ours: Side, anvil: Side) -> None:
    unknown = "0x" + "12" * 32
    assert ours.result("trace_transaction", unknown) == anvil.result("trace_transaction", unknown)
    assert ours.result("trace_get", unknown, ["0x0"]) is None


def test_a_frame_by_its_position(ours: Side) -> None:
    frames = ours.result("trace_transaction", ours.hash("calls"))
    for position, frame in enumerate(frames):
        assert ours.result("trace_get", ours.hash("calls"), [hex(position)]) == frame
    assert ours.result("trace_get", ours.hash("calls"), [1]) == frames[1]
    assert ours.result("trace_get", ours.hash("calls"), [hex(len(frames))]) is None
    assert ours.result("trace_get", ours.hash("calls"), [2**64 - 1]) is None
    assert ours.result("trace_get", ours.hash("calls"), []) is None
    assert ours.result("trace_get", ours.hash("calls"), ["0x0", "0x0"]) is None


def filtered(side: Side, **members: Any) -> Any:
    first, last = side.block("echo"), side.block("short life")
    return side.result("trace_filter", {"fromBlock": first, "toBlock": last} | members)


@pytest.mark.parametrize(
    ("names", "members"),
    [
        ((), {}),
        ((), {"count": 3}),
        ((), {"count": 4, "after": 9}),
        ((), {"after": 1000}),
        ((), {"fromAddress": [SENDER]}),
        (("toAddress",), {}),
        (("toAddress",), {"fromAddress": [SENDER], "mode": "intersection"}),
        (("toAddress",), {"fromAddress": [SENDER], "mode": "union"}),
        (("fromAddress", "toAddress"), {"count": 2}),
    ],
)
def test_filters_give_the_frames_of_anvil(
    ours: Side, anvil: Side, names: tuple[str, ...], members: dict[str, Any]
) -> None:
    targets = {"toAddress": "echo", "fromAddress": "caller"}
    found, wanted = (
        filtered(side, **members, **{name: [side.contract(targets[name])] for name in names})
        for side in (ours, anvil)
    )
    assert without(found, HASHES) == without(wanted, HASHES)


def test_filters_that_are_refused(ours: Side, anvil: Side) -> None:
    backwards = {"fromBlock": "0x8", "toBlock": "0x2"}
    assert (
        ours.ask("trace_filter", backwards)["error"]
        == (anvil.ask("trace_filter", backwards)["error"])
    )
    for wrong in ({"mode": "both"}, {"count": -1}, {"fromAddress": 5}, {"toAddress": ["0x1"]}, 7):
        assert ours.ask("trace_filter", wrong)["error"]["code"] == -32602


def test_numbers_beyond_every_list(ours: Side) -> None:
    most = 2**64 - 1
    assert filtered(ours, count=most) == filtered(ours)
    assert filtered(ours, count=most, after=most) == []
    assert ours.ask("trace_filter", {"count": most + 1})["error"]["code"] == -32602


def test_a_filter_without_members_covers_the_chain(ours: Side) -> None:
    tagged = {"fromBlock": "earliest", "toBlock": "latest"}
    assert ours.result("trace_filter", {}) == ours.result("trace_filter", tagged)
