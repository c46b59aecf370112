"""Tests that reads from an endpoint with random faults give right values or an error."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fastevm.core.state.source import RemoteAccount, Wanted
from fastevm.errors import ForkError
from fastevm.fork import RemoteSource

from .fake_endpoint import FakeEndpoint, HttpFault, Ways, block_hash

ADDRESSES = [bytes([number]) * 20 for number in range(1, 9)]
SERVED = ["debug_traceCall", "eth_createAccessList", "eth_getStorageValues", "eth_simulateV1",
          "eth_call", "eth_getAccountInfo", "eth_getAccount"]  # fmt: skip
Open = Callable[..., RemoteSource]


def fault(rng: random.Random) -> HttpFault:
    limit = {"id": None, "error": {"code": -32005, "message": "limit of requests per second"}}
    return rng.choice(
        [
            HttpFault(0), HttpFault(0, b'[{"jsonrpc'), HttpFault(429), HttpFault(500, b"oops"),
            HttpFault(429, b"", {"Retry-After": "0.01"}), HttpFault(503), HttpFault(200, b"<html>"),
            HttpFault(200, json.dumps(limit).encode()), HttpFault(200, b'{"id":0,"result":"0x1"}'),
            HttpFault(200, b"[]"), HttpFault(200, b"null"),
        ]
    )  # fmt: skip


def tampered(rng: random.Random, answer: Any) -> Any:
    """Removes items of a batch answer at random, or replaces items by temporary errors."""
    if not isinstance(answer, list) or rng.random() < 0.6:
        return answer
    error = {"code": 429, "message": "slow down: too many requests"}
    kept = [item for item in answer if rng.random() < 0.9]
    return [{"id": item["id"], "error": error} if rng.random() < 0.1 else item for item in kept]


@pytest.mark.parametrize("seed", range(12))
def test_values_are_right_whatever_the_endpoint_does(
    endpoint: FakeEndpoint, source_of: Open, tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    ways = Ways(endpoint)
    ways.serve(*rng.sample(SERVED, rng.randrange(len(SERVED) + 1)))
    ways.wrong = rng.choice([0, 0, 1])
    for address in ADDRESSES:
        code = rng.randbytes(rng.choice([0, 5, 3_000]))
        endpoint.accounts[address] = RemoteAccount(rng.getrandbits(64), rng.getrandbits(8), code)
        endpoint.slots.update({(address, slot): rng.getrandbits(256) for slot in range(40)})
    ways.touched = {item: rng.sample(range(40), 5) for item in rng.sample(ADDRESSES, 3)}
    endpoint.batch_limit = rng.choice([1, 7, 100])
    endpoint.tamper = lambda answer: tampered(rng, answer)
    options = {"cache": tmp_path, "retries": 12, "backoff": 0.001, "timeout": 5.0}
    options["compute_units_per_second"] = 1_000_000
    source, errors = None, 0
    for _ in range(12):
        endpoint.faults = [fault(rng) for _ in range(rng.randrange(4))]
        wanted = Wanted(
            set(rng.sample(ADDRESSES, 3)),
            {(rng.choice(ADDRESSES), rng.randrange(60)) for _ in range(rng.choice([3, 80]))},
            {rng.randrange(8, 10)},
            [{"to": "0x" + rng.choice(ADDRESSES).hex()}],
        )
        try:
            if source is None or rng.random() < 0.3:
                source = source_of(10, **options)
            found = source.fetch(wanted)
        except ForkError as error:
            assert "127.0.0.1" in str(error)
            errors += 1
            continue
        assert found.accounts.keys() >= wanted.accounts
        assert found.slots.keys() >= wanted.slots
        for address, account in found.accounts.items():
            assert account == endpoint.accounts.get(address, RemoteAccount(0, 0))
        assert found.slots == {key: endpoint.slots.get(key, 0) for key in found.slots}
        assert found.block_hashes == {n: block_hash(n) for n in wanted.block_hashes}
    assert errors <= 2, "they are all surmountable"
