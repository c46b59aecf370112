"""Tests that eth_simulateV1 differs between the dialects only as documented.

Uses the recorded requests.
"""

import json
from typing import Any

import pytest

from fastevm import keccak256
from fastevm.bench.node.launch import ServerThread

from .simulating import A, C, ask, blocks, header_hash, one_block, recorded_simulations

REQUESTS = recorded_simulations()
ZERO = "0x" + "00" * 32
# Members that are equal in both dialects. In preconf, the state root is zero, so hashes differ, and
# the block spacing differs, so times and blob fees differ.
SAME_IN_BLOCK = ("number", "gasUsed", "gasLimit", "miner", "baseFeePerGas", "withdrawals", "uncles")
SAME_IN_CALL = ("gasUsed", "maxUsedGas", "status")
# These requests set times that are only valid if blocks are 12 s apart.
TIMES_OF_THEIR_OWN = frozenset(
    name for name, request in REQUESTS.items() if '"time"' in json.dumps(request)
)


def answers(live: ServerThread, name: str) -> tuple[Any, Any]:
    """Returns the answers of both dialects to a recorded request."""
    request = REQUESTS[name]
    payload, *block = request["params"]
    block = block[0] if block else "latest"
    return ask(live.url("preconf"), payload, block), ask(live.url("geth"), payload, block)


@pytest.mark.parametrize("name", sorted(set(REQUESTS) - TIMES_OF_THEIR_OWN))
def test_both_dialects_agree_on_what_neither_changes(live: ServerThread, name: str) -> None:
    preconf, geth = answers(live, name)
    assert ("error" in preconf) == ("error" in geth)
    if "error" in geth:
        assert preconf["error"] == geth["error"]
        return
    assert len(preconf["result"]) == len(geth["result"])
    for ours, theirs in zip(preconf["result"], geth["result"], strict=True):
        assert set(ours) == set(theirs)
        assert [ours.get(k) for k in SAME_IN_BLOCK] == [theirs.get(k) for k in SAME_IN_BLOCK]
        for call, other in zip(ours["calls"], theirs["calls"], strict=True):
            assert [call[k] for k in SAME_IN_CALL] == [other[k] for k in SAME_IN_CALL]
            assert len(call["logs"]) == len(other["logs"])
            assert ("error" in call) == ("error" in other)


@pytest.mark.parametrize("name", sorted(REQUESTS))
def test_the_hash_is_that_of_the_header_shown_and_parents_are_chained(
    live: ServerThread, name: str
) -> None:
    preconf, _ = answers(live, name)
    parent = None
    for block in preconf.get("result", ()):
        assert block["stateRoot"] == ZERO
        assert block["hash"] == header_hash(block)
        assert parent is None or block["parentHash"] == parent
        parent = block["hash"]
        assert all(log["blockHash"] == parent for call in block["calls"] for log in call["logs"])


def test_a_failed_call_has_a_text_for_an_error_and_returns_its_revert_data(
    live: ServerThread,
) -> None:
    reason = (
        bytes.fromhex("08c379a0")
        + (32).to_bytes(32, "big")
        + (2).to_bytes(32, "big")
        + b"no".ljust(32, b"\0")
    )
    # copies the calldata to memory and reverts with it
    state = {C: {"code": "0x365f5f37365ffd"}, A: {"code": "0xfe"}}
    calls = [
        {"from": A, "to": C, "input": "0x" + reason.hex()},
        {"from": A, "to": C, "input": "0x1234"},
        {"from": A, "to": C},
        {"from": A, "to": A, "gas": "0xffff"},
    ]
    found = blocks(live.url("preconf"), one_block(*calls, state=state))[0]["calls"]
    assert [(c["error"], c["returnData"], c["status"]) for c in found] == [
        ("execution reverted: no", "0x" + reason.hex(), "0x0"),
        ("execution reverted", "0x1234", "0x0"),
        ("execution reverted", "0x", "0x0"),
        ("invalid opcode: INVALID", "0x", "0x0"),
    ]
    geth = blocks(live.url("geth"), one_block(*calls, state=state))[0]["calls"]
    assert [c["error"] for c in geth] == [
        {"code": 3, "message": "execution reverted: no", "data": "0x" + reason.hex()},
        {"code": 3, "message": "execution reverted", "data": "0x1234"},
        {"code": 3, "message": "execution reverted", "data": "0x"},
        {"code": -32015, "message": "invalid opcode: INVALID"},
    ]
    assert {c["returnData"] for c in geth} == {"0x"}


def test_blocks_follow_each_other_by_the_block_time_of_the_chain(live: ServerThread) -> None:
    payload = {"blockStateCalls": [{}, {"blockOverrides": {"number": "0x39"}}]}
    seconds = live.server.node.config.block_time_ms // 1000
    times = [int(block["timestamp"], 16) for block in blocks(live.url("preconf"), payload)]
    assert times == [540 + seconds * step for step in (1, 2, 3)]


def test_the_hash_covers_the_zero_root_that_later_blocks_see(live: ServerThread) -> None:
    # BLOCKHASH(NUMBER - 1)
    call = {"from": A, "to": C}
    state = {C: {"code": "0x60014303405f5260205ff3"}}
    first, second = blocks(
        live.url("preconf"), {"blockStateCalls": [{}, {"calls": [call], "stateOverrides": state}]}
    )
    assert second["calls"][0]["returnData"] == first["hash"]
    assert keccak256(b"") != bytes.fromhex(first["hash"][2:])
