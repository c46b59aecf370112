"""Tests that too large bodies are rejected before they are parsed."""

import json
import tracemalloc

import pytest

from fastevm.rpc.dispatch.envelope import Call, Refusal, parse_body
from fastevm.rpc.limits import VALUES_LIMIT

ITEMS = 1_000
CALL = b'{"jsonrpc":"2.0","id":%d,"method":"eth_chainId"}'


@pytest.mark.parametrize("item", [b"1", b"[]", b"{}", b'""', CALL % 7])
def test_a_batch_beyond_the_limit_is_one_refusal_and_builds_nothing(item: bytes) -> None:
    body = b"[" + b",".join([item] * (5_000_000 // (len(item) + 1))) + b"]"
    tracemalloc.start()
    found = parse_body(body, ITEMS)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000
    assert isinstance(found, list) and len(found) == 1 and isinstance(found[0], Refusal)
    assert found[0].error.reason == "batch_too_large"
    assert found[0].id == (b"7" if b"chainId" in item else b"null")


def test_a_batch_of_as_many_calls_as_allowed_is_parsed() -> None:
    body = b"[%b]" % b",".join(CALL % number for number in range(1, ITEMS + 1))
    found = parse_body(body, ITEMS)
    assert isinstance(found, list) and len(found) == ITEMS
    assert all(isinstance(call, Call) for call in found)


def test_params_of_too_many_values_are_refused() -> None:
    params = b"[" + b"[]," * VALUES_LIMIT + b"[]]"
    body = b'{"jsonrpc":"2.0","id":1,"method":"eth_call","params":%b}' % params
    found = parse_body(body, ITEMS)
    assert isinstance(found, Refusal) and found.error.reason == "too_many_values"


def test_a_long_text_is_one_value() -> None:
    body = json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "web3_sha3", "params": ["0x" + "," * 10**6]}
    )
    assert isinstance(parse_body(body.encode(), ITEMS), Call)
