"""Tests that reading eth_simulateV1 from text and from parsed JSON makes equal plans.

The standard ignores unknown members. Requests with unknown members are read from parsed JSON.
"""

import json
import random
from typing import Any

import pytest

from fastevm.bench.node.launch import ServerThread
from fastevm.simulate import read_request

from .simulating import A, B, C, ask, recorded_simulations

REQUESTS = recorded_simulations()
PAYLOADS = 120
D, POOR = ("0x" + byte * 20 for byte in ("d1", "ee"))
# name -> code of the called contracts, in hex
PROGRAMS = {
    "count": "5f54600101805f555f5260205ff3",
    "log": "33436020" + "5fa200",
    "parent hash": "60014303405f5260205ff3",
    "block": "4248184a184118441845185f5260205ff3",
    "gas": "5a5f5260205ff3",
    "pay": "5f5f5f5f600173" + "b0" * 20 + "5af100",
    "revert": "365f5f37365ffd",
    "invalid": "fe",
    "underflow": "50",
    "loop": "5b5f56",
    "destroy": "33ff",
    "clear": "5f5f5500",
    "create": "5f5f5ff0" + "5f52" + "60205ff3",
    "transient": "5f5c60010180" + "5f5d" + "5f5260205ff3",
}
REASON = "08c379a0" + f"{32:064x}" + f"{2:064x}" + "6e6f".ljust(64, "0")


def call_of(dice: random.Random) -> dict[str, Any]:
    """Returns a random call. Most are valid, some fail, and a few make the request invalid."""
    call: dict[str, Any] = {"from": dice.choice((A, B, C, D)), "to": dice.choice((A, C, D, C, D))}
    if dice.random() < 0.15:
        call |= {"input": "0x60015f55" + dice.choice(("00", "60015ff3", "fe"))}
        del call["to"]
    elif dice.random() < 0.4:
        call[dice.choice(("data", "input"))] = "0x" + dice.choice(("", "1234", REASON))
    if dice.random() < 0.3:
        call["value"] = hex(dice.choice((0, 1, 10**15)))
    if dice.random() < 0.93:
        call["gas"] = hex(dice.choice((100_000, 300_000, 1_000_000)))
    if dice.random() < 0.1:
        call["nonce"] = hex(dice.choice((0, 1, 2**64 - 2)))
    if dice.random() < 0.1:
        call["gasPrice"] = hex(dice.choice((0, 10**9)))
    elif dice.random() < 0.2:
        call |= {"maxFeePerGas": hex(10**10), "maxPriorityFeePerGas": hex(dice.choice((0, 10**9)))}
    if dice.random() < 0.03:
        call |= dice.choice(
            ({"gas": "0x64"}, {"from": POOR, "value": "0x1"}, {"chainId": "0x1"}, {"type": "0x2"})
        )
    return call


def account_of(dice: random.Random) -> dict[str, Any]:
    """Returns a random state override of an account."""
    account: dict[str, Any] = {"balance": hex(10**20)}
    if dice.random() < 0.8:
        account["code"] = "0x" + dice.choice(list(PROGRAMS.values()))
    if dice.random() < 0.2:
        account["nonce"] = hex(dice.choice((0, 7)))
    if dice.random() < 0.4:
        slots = {f"0x{slot:064x}": f"0x{dice.choice((0, 5)):064x}" for slot in range(2)}
        account[dice.choice(("state", "stateDiff"))] = slots
    return account


def block_of(dice: random.Random, number: int) -> dict[str, Any]:
    """Returns a random entry of blockStateCalls."""
    block: dict[str, Any] = {"calls": [call_of(dice) for _ in range(dice.randrange(5))]}
    if number == 0 or dice.random() < 0.3:
        block["stateOverrides"] = {who: account_of(dice) for who in (A, B, C, D)}
    overrides: dict[str, Any] = {}
    for member, value in (
        ("gasLimit", hex(30_000_000)),
        ("feeRecipient", B),
        ("prevRandao", "0x" + "07" * 32),
        ("baseFeePerGas", hex(7)),
        ("blobBaseFee", hex(9)),
        ("beaconRoot", "0x" + "08" * 32),
        ("number", hex(0x38 + 3 * number)),
        ("difficulty", "0x1"),
    ):
        if dice.random() < 0.15:
            overrides[member] = value
    if overrides or dice.random() < 0.2:
        block["blockOverrides"] = overrides
    return block


def payload_of(seed: int) -> dict[str, Any]:
    """Returns the random payload of a seed."""
    dice = random.Random(seed)
    blocks = [block_of(dice, number) for number in range(dice.randrange(1, 5))]
    payload: dict[str, Any] = {"blockStateCalls": blocks}
    if dice.random() < 0.3:
        payload["traceTransfers"] = True
    if dice.random() < 0.2:
        payload["validation"] = dice.random() < 0.5
    return payload


def goes_directly(payload: Any) -> bool:
    return read_request(json.dumps([payload]).encode()) is not None


def check(live: ServerThread, payload: Any, block: Any = "latest") -> Any:
    """Asserts that both ways of reading give equal answers in both dialects.

    Returns the answer of the last dialect.
    """
    assert not goes_directly(payload | {"nobodyKnowsIt": 1})
    for dialect in ("preconf", "geth"):
        directly = ask(live.url(dialect), payload, block)
        assert directly == ask(live.url(dialect), payload | {"nobodyKnowsIt": 1}, block)
    return directly


@pytest.mark.parametrize("part", range(4))
def test_random_requests_get_the_same_answer_either_way(live: ServerThread, part: int) -> None:
    accepted = failed = 0
    for seed in range(part, PAYLOADS, 4):
        payload = payload_of(seed)
        assert goes_directly(payload)
        answer = check(live, payload)
        calls = [call for block in answer.get("result", ()) for call in block["calls"]]
        accepted += "result" in answer
        failed += sum("error" in call for call in calls)
    assert accepted >= 10
    assert failed >= 10


@pytest.mark.parametrize("name", sorted(REQUESTS))
def test_recorded_requests_get_the_same_answer_either_way(live: ServerThread, name: str) -> None:
    payload, *block = REQUESTS[name]["params"]
    if not goes_directly(payload):
        pytest.skip("not of the usual form")
    check(live, payload, *block)


def test_most_recorded_requests_are_of_the_usual_form() -> None:
    payloads = [request["params"][0] for request in REQUESTS.values()]
    assert sum(map(goes_directly, payloads)) >= len(payloads) // 2


def test_a_base_whose_excess_blob_gas_prices_blobs_gives_the_same_fees(live: ServerThread) -> None:
    # returns BLOBBASEFEE, which changes from block to block
    state = {C: {"code": "0x4a5f5260205ff3"}}
    entry = {"calls": [{"from": A, "to": C, "gas": "0xffff"}]}
    first = entry | {"stateOverrides": state}
    check(live, {"blockStateCalls": [first, entry, entry], "validation": False})


STATES = '[{"blockStateCalls":[{"stateOverrides":{%s}}]}]'
ONE = '[{"blockStateCalls":[{"calls":[%s]}]},"latest"]'


@pytest.mark.parametrize(
    "call",
    [
        '{"to":"0x01"}',  # an address that is too short
        '{"to":"0X' + "c0" * 20 + '"}',
        '{"to":"0x' + "c0" * 19 + 'cg"}',
        '{"value":"0x01"}',  # a number with a leading zero
        '{"value":"0x"}',
        '{"value":1}',
        '{"value":null}',
        '{"value":"0x1","value":"0x2"}',
        '{"data":"0x123"}',
        '{"data":"0x12","input":"0x12"}',
        '{"gas":"0x10000000000000000"}',
        '{"fr\\u006fm":"0x' + "c0" * 20 + '"}',
        '{"accessList":[]}',
        '{"gas":"0x1",}',
        '{"gas" "0x1"}',
        '{"gas":"0x1"',
        "null",
        "[]",
    ],
)
def test_calls_of_another_form_are_left_to_the_other_reader(call: str) -> None:
    assert read_request((ONE % call).encode()) is None


@pytest.mark.parametrize(
    "params",
    [
        "",
        "[",
        "[]",
        "{}",
        "[{}]",
        '[{"blockStateCalls":[]}]',
        '[{"blockStateCalls":[{}],"returnCallTree":true}]',
        '[{"blockStateCalls":[{}]},]',
        '[{"blockStateCalls":[{}],"validation":1}]',
        '[{"blockStateCalls":[{"blockOverrides":{"withdrawals":[]}}]}]',
        STATES % f'"0x{"01" * 20}":{{"state":{{}},"stateDiff":{{}}}}',
        STATES % f'"0x{"ab" * 20}":{{}},"0x{"AB" * 20}":{{}}',
    ],
)
def test_requests_of_another_form_are_left_to_the_other_reader(params: str) -> None:
    assert read_request(params.encode()) is None


def test_what_follows_the_payload_is_given_back() -> None:
    for text, others in (("]", b"[]"), (' , "latest" ] ', b'["latest" ]'), (",{}]", b"[{}]")):
        found = read_request(b'[ {"blockStateCalls" : [ { } ] }' + text.encode())
        assert found is not None
        assert found[1] == others
