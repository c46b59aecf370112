"""Tests the fault-injecting proxy that other tests use."""

import time
from collections.abc import Iterator

import pytest

from fastevm.bench.remote import market
from fastevm.bench.remote.market_nodes import Upstream
from fastevm.bench.remote.proxy import Endpoint, Proxy
from fastevm.rpc_client.blocking import JsonRpcClient
from fastevm.rpc_client.messages import RpcRefusal, RpcUnreachable
from tests.faults import faulty_endpoints as endpoints
from tests.max_wait import MAX_WAIT

HEAD = ("eth_blockNumber", [])


@pytest.fixture
def proxy(own: Upstream) -> Iterator[Proxy]:
    with Proxy(own.url, key="secret-key") as found:
        yield found


def client(proxy: Proxy) -> JsonRpcClient:
    return JsonRpcClient(proxy.url, timeout=MAX_WAIT)


def test_it_forwards_and_counts(own: Upstream, proxy: Proxy) -> None:
    with client(proxy) as asking:
        assert int(asking.call("eth_call", market.balance_call(0, 1), "latest"), 16) > 0
        asking.batch([HEAD] * 3)
    traffic = proxy.count_anew()
    assert (traffic.requests, traffic.round_trips, traffic.calls) == (2, 2, 4)
    assert (traffic.connections, traffic.largest_batch) == (1, 3)
    assert traffic.methods == {"eth_call": 1, "eth_blockNumber": 3}
    assert traffic.sent > 0 and traffic.received > 0
    assert proxy.traffic.requests == 0


def test_it_waits(proxy: Proxy) -> None:
    proxy.latency = 0.05
    started = time.monotonic()
    with client(proxy) as asking:
        asking.call("eth_chainId")
    assert time.monotonic() - started >= 0.05


def test_it_wants_its_key(own: Upstream, proxy: Proxy) -> None:
    with (
        JsonRpcClient(proxy.url.replace("secret", "other")) as asking,
        pytest.raises(RpcUnreachable, match="401"),
    ):
        asking.call("eth_chainId")


def test_it_limits_batches_and_refuses_methods(proxy: Proxy) -> None:
    proxy.endpoint = endpoints.BatchLimit(2, form="each")
    with client(proxy) as asking:
        assert all(isinstance(each, RpcRefusal) for each in asking.batch([HEAD] * 3))
        assert all(isinstance(each, str) for each in asking.batch([HEAD] * 2))
        proxy.endpoint = endpoints.Refuses(["eth_chainId"])
        number, refusal = asking.batch([HEAD, ("eth_chainId", [])])
        assert isinstance(number, str)
        assert isinstance(refusal, RpcRefusal) and refusal.code == -32601


@pytest.mark.parametrize(
    ("endpoint", "words"),
    [
        (endpoints.TooMany(1, retry_after=1), "429"),
        (endpoints.Fails(1), "502"),
        (endpoints.Cuts(1), "."),
        (endpoints.Cuts(1, within=True), "."),
        (endpoints.Answers(endpoints.not_json, 1), "."),
    ],
    ids=["too many", "bad gateway", "cut before", "cut within", "no json"],
)
def test_it_fails_as_often_as_it_should(proxy: Proxy, endpoint: Endpoint, words: str) -> None:
    proxy.endpoint = endpoint
    with pytest.raises(RpcUnreachable, match=words), client(proxy) as asking:
        asking.call("eth_chainId")
    with client(proxy) as asking:
        assert asking.call("eth_chainId") == "0x7a69"


def test_it_lies_about_one_slot_in_every_form(proxy: Proxy, own: Upstream) -> None:
    token, slot = market.TOKEN_ADDRESSES[1], market.token_slot_of(3)
    at = "0x" + token.hex()
    lie = proxy.endpoint = endpoints.Lies(token, slot, 77)
    key = f"0x{slot:064x}"
    tracer = {"tracer": "prestateTracer"}
    with client(proxy) as asking:
        assert int(asking.call("eth_getStorageAt", at, hex(slot), "latest"), 16) == 77
        values = asking.call("eth_getStorageValues", {at: [key]}, "latest")
        assert [int(each, 16) for each in values[at]] == [77]
        proof = asking.call("eth_getProof", at, [key], "latest")
        assert int(proof["storageProof"][0]["value"], 16) == 77
        state = asking.call("debug_traceCall", market.balance_call(1, 3), "latest", tracer)
        assert int(state[at]["storage"][key], 16) == 77
        other = f"0x{slot + 1:064x}"
        assert int(asking.call("eth_getStorageAt", at, other, "latest"), 16) == 0
    assert lie.reported == 4


def test_every_second_answer_lags(proxy: Proxy, own: Upstream) -> None:
    head = own.ask("eth_getBlockByNumber", "latest", False)
    old = own.ask("eth_getBlockByNumber", hex(own.head - 2), False)
    proxy.endpoint = endpoints.OldHead(own.head - 2, old["hash"], [head["hash"], head["number"]])
    with client(proxy) as asking:
        assert [int(asking.call("eth_blockNumber"), 16) for _ in range(2)] == [
            own.head - 2,
            own.head,
        ]
        block = {"blockHash": head["hash"]}
        with pytest.raises(RpcRefusal, match="header not found"):
            asking.call("eth_getBalance", "0x" + bytes(20).hex(), block)
        assert asking.call("eth_getBalance", "0x" + bytes(20).hex(), block)
