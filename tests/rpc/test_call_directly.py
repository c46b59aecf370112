"""Tests that eth_call answers the same whether the node reads the text or parsed JSON."""

import json
import random
from typing import Any

import pytest

from fastevm.bench.node.launch import ServerThread
from fastevm.rpc_client.messages import request_body
from fastevm.simulate import read_call_params

from .simulating import A, B, C, post
from .test_simulate_directly import PROGRAMS, D, call_of

CALLS = 150
TO = "0x" + "c0" * 20
WORD = "0x" + "00" * 31 + "07"


def overrides_of(dice: random.Random) -> dict[str, Any]:
    """Returns random state overrides of the called accounts."""
    names = sorted(set(PROGRAMS) - {"loop"})
    overrides: dict[str, Any] = {
        address: {"code": "0x" + PROGRAMS[dice.choice(names)]} for address in (C, D)
    }
    if dice.random() < 0.7:
        overrides[A] = {"balance": hex(10**30), "nonce": hex(dice.choice((0, 5)))}
    if dice.random() < 0.3:
        overrides[C] |= {dice.choice(("state", "stateDiff", "storage")): {WORD: WORD}}
    if dice.random() < 0.1:
        overrides[B] = {"movePrecompileToAddress": D}
    return overrides


@pytest.mark.parametrize("dialect", ["preconf", "geth"])
def test_both_readers_give_the_same_answer(live: ServerThread, dialect: str) -> None:
    dice, url, direct = random.Random(dialect), live.url(dialect), 0
    for _ in range(CALLS):
        call = call_of(dice)
        params = [call, dice.choice(("latest", "pending", "earliest", "0x1", "0xffffff"))]
        if dice.random() < 0.8:
            params.append(overrides_of(dice))
        direct += read_call_params(json.dumps(params).encode()) is not None
        short = post(url, request_body("eth_call", params))
        long = post(url, request_body("eth_call", [call | {"unknown": 1}, *params[1:]]))
        assert short == long, params
    assert direct > CALLS // 2


@pytest.mark.parametrize(
    "params",
    [
        [{"to": TO}, "latest"],
        [{"to": TO, "data": "0x01", "value": "0x0", "gas": "0x5208"}, "0x10"],
        [{}, "pending", {TO: {"balance": "0x1", "storage": {WORD: WORD}}}],
        [{"from": TO, "input": "0x"}, WORD, {}],
    ],
)
def test_the_usual_form(params: Any) -> None:
    found = read_call_params(json.dumps(params).encode())
    assert found is not None
    assert found[1] == params[1]
    assert found[0].has_overrides == bool(len(params) == 3 and params[2])


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"[{}]",
        b'[{}, "latest"',
        b'[{}, "latest"] 1',
        b'[{}, "latest", null]',
        b'[{}, "latest", {}, {}]',
        b'[{}, {"blockNumber": "0x1"}]',
        b'[{"to": null}, "latest"]',
        b'[{"gas": "0x01"}, "latest"]',
        b'[{"accessList": []}, "latest"]',
        b'[{"unknown": 1}, "latest"]',
        b'["latest", {}]',
    ],
)
def test_any_other_form_is_left_to_the_handler(text: bytes) -> None:
    assert read_call_params(text) is None
