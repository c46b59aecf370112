"""Tests requests to endpoints: batches, limits, retries, several URLs, and invalid answers."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fastevm.errors import ForkError
from fastevm.fork.call_list import RpcCall
from fastevm.fork.counters import ForkCounters
from fastevm.fork.endpoint import MIN_LATENCIES
from fastevm.fork.endpoints import EndpointOptions, Endpoints
from fastevm.rpc_client.messages import RpcRefusal
from tests.max_wait import MAX_WAIT

from .fake_endpoint import FakeEndpoint, HttpFault, RpcError

CHAIN_ID = RpcCall("eth_chainId")
BALANCES = [RpcCall("eth_getBalance", (f"0x{n:040x}", "latest")) for n in range(40)]
Make = Callable[..., Endpoints]
LIMIT = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32005,"message":"rate limit exceeded"}}'


@pytest.fixture
def asking(endpoint: FakeEndpoint) -> Iterator[Make]:
    made: list[Endpoints] = []

    def make(*urls: str, **options: Any) -> Endpoints:
        options = {"backoff": 0.01, "timeout": 2.0, "progress": False, **options}
        made.append(Endpoints(urls or (endpoint.url,), EndpointOptions(**options), ForkCounters()))
        return made[-1]

    yield make
    for item in made:
        item.close()


def test_calls_go_in_one_body_and_answers_come_in_their_order(
    endpoint: FakeEndpoint, asking: Make
) -> None:
    endpoint.methods["eth_getBalance"] = lambda address, _: hex(int(address, 16) * 3)
    endpoints = asking()
    assert endpoints.ask(BALANCES) == [hex(n * 3) for n in range(40)]
    assert len(endpoint.bodies) == 1
    assert (endpoints.counters.requests, endpoints.counters.calls) == (1, 40)
    assert endpoints.counters.bytes > 1000


def test_connections_stay_open(endpoint: FakeEndpoint, asking: Make) -> None:
    endpoints = asking()
    for _ in range(5):
        endpoints.ask([CHAIN_ID])
    assert endpoint.connections == 1


def test_a_limit_of_the_batch_is_learned_from_the_text(
    endpoint: FakeEndpoint, asking: Make
) -> None:
    endpoint.batch_limit = 10
    endpoints = asking()
    assert len(endpoints.ask(BALANCES)) == 40
    assert endpoints.batch_limit == 10
    assert len(endpoint.bodies) == 5
    endpoint.forget()
    endpoints.ask(BALANCES)
    assert len(endpoint.bodies) == 4
    assert endpoints.counters.round_trips == 3


@pytest.mark.parametrize("status", [400, 403, 413, 200])
def test_an_endpoint_that_takes_no_batches_is_asked_one_by_one(
    endpoint: FakeEndpoint, asking: Make, status: int
) -> None:
    def refuse(answer: Any) -> Any:
        single = isinstance(answer, dict)
        return answer if single else {"id": None, "error": {"code": -32600, "message": "no"}}

    endpoint.tamper = refuse
    if status != 200:
        endpoint.tamper = lambda answer: answer
        endpoint.faults = [HttpFault(status, b"<html>", times=6)]
    assert asking().ask(BALANCES) == ["0x0"] * 40


def test_optional_calls_are_given_up_when_a_batch_is_refused_because_of_them(
    endpoint: FakeEndpoint, asking: Make
) -> None:
    real = endpoint.answer

    def picky(asked: Any) -> Any:
        if isinstance(asked, list) and any("debug" in item["method"] for item in asked):
            return {"id": None, "error": {"code": -32601, "message": "debug is not whitelisted"}}
        return real(asked)

    endpoint.answer = picky  # type: ignore[method-assign]
    answers = asking().ask([CHAIN_ID, RpcCall("debug_traceCall", (), True), CHAIN_ID])
    assert answers[0] == answers[2]
    assert isinstance(answers[1], RpcRefusal)
    assert len(endpoint.bodies) == 2


def test_parts_of_a_batch_that_are_limited_or_missing_are_asked_again(
    endpoint: FakeEndpoint, asking: Make
) -> None:
    def half(answer: Any) -> Any:
        endpoint.tamper = lambda answer: answer
        error = {"code": 429, "message": "too many requests"}
        return [{"id": item["id"], "error": error} if k % 3 else item
                for k, item in enumerate(answer) if k % 4]  # fmt: skip

    endpoint.tamper = half
    endpoints = asking()
    assert endpoints.ask(BALANCES) == ["0x0"] * 40
    assert endpoints.counters.retries >= 1


@pytest.mark.parametrize(
    "fault",
    [
        HttpFault(500, b"oops"), HttpFault(502, b"<html>bad gateway"), HttpFault(200, b"{"),
        HttpFault(0, b"{\"js"), HttpFault(200, b"7"), HttpFault(429), HttpFault(200, LIMIT),
        HttpFault(503, b"", {"Retry-After": "0"}), HttpFault(200, b'{"id":7,"result":"0x1"}'),
    ],
)  # fmt: skip
def test_a_fault_is_followed_by_a_second_attempt(
    endpoint: FakeEndpoint, asking: Make, fault: HttpFault
) -> None:
    endpoint.faults = [HttpFault(fault.status, fault.body, fault.headers)]
    endpoints = asking()
    assert endpoints.ask([CHAIN_ID]) == [hex(endpoint.chain_id)]
    assert endpoints.counters.retries == 1


def test_faults_without_end_name_the_endpoint_and_the_attempts(
    endpoint: FakeEndpoint, asking: Make
) -> None:
    endpoint.faults = [HttpFault(502, b"", times=99)]
    with pytest.raises(ForkError, match=r"127\.0\.0\.1.*502 \(after 3 attempts\)"):
        asking(retries=2).ask([CHAIN_ID])
    assert len(endpoint.bodies) == 3


def test_retry_after_is_waited_for(endpoint: FakeEndpoint, asking: Make) -> None:
    endpoint.faults = [HttpFault(429, b"", {"Retry-After": "0.4"})]
    began = time.monotonic()
    asking().ask([CHAIN_ID])
    assert time.monotonic() - began >= 0.4


def test_a_wait_that_is_longer_than_all_attempts_may_take_ends_at_once(
    endpoint: FakeEndpoint, asking: Make
) -> None:
    endpoint.faults = [HttpFault(429, b"", {"Retry-After": "3600"})]
    with pytest.raises(ForkError, match=r"would be in 3\d{3} seconds"):
        asking().ask([CHAIN_ID])


def test_after_a_limit_calls_are_held_back_by_compute_units(
    endpoint: FakeEndpoint, asking: Make
) -> None:
    endpoints = asking(compute_units_per_second=2_000)
    endpoint.faults = [HttpFault(429)]
    began = time.monotonic()
    for _ in range(3):
        endpoints.ask(BALANCES)  # 800 compute units each
    assert time.monotonic() - began > 0.6


def test_without_a_limit_calls_are_not_held_back(asking: Make) -> None:
    endpoints = asking(compute_units_per_second=1)
    began = time.monotonic()
    for _ in range(3):
        endpoints.ask(BALANCES)
    assert time.monotonic() - began < MAX_WAIT


@pytest.mark.parametrize("as_status", [True, False])
def test_a_batch_above_the_quota_is_split_at_once(
    endpoint: FakeEndpoint, asking: Make, as_status: bool
) -> None:
    """Repeating the whole batch would not help: the endpoint rejects batches of over 16 calls."""
    real, sizes = endpoint.answer, []

    def metered(asked: Any) -> Any:
        sizes.append(len(asked) if isinstance(asked, list) else 1)
        if sizes[-1] <= 16:
            return real(asked)
        error = {"code": 429, "message": "compute units per second exceeded"}
        if as_status:
            return {"id": None, "error": error}
        return [{"id": item["id"], "error": error} for item in asked]

    endpoint.answer = metered  # type: ignore[method-assign]
    endpoints = asking(retries=1, compute_units_per_second=600)
    assert endpoints.ask(BALANCES) == ["0x0"] * 40
    assert sizes == [40, 15, 15, 10] or sorted(sizes[1:]) == [10, 15, 15]


@pytest.mark.parametrize("units", [200, 60])
def test_a_quota_below_the_assumed_one_is_learned(
    endpoint: FakeEndpoint, asking: Make, units: int
) -> None:
    """Sends 40 calls of 20 units. The endpoint has ``units``, and again after each rejection."""
    real, left = endpoint.answer, [float(units)]
    refused = []

    def metered(asked: Any) -> Any:
        price = 20 * (len(asked) if isinstance(asked, list) else 1)
        if price <= left[0]:
            left[0] -= price
            return real(asked)
        refused.append(price)
        left[0] = units  # the quota is restored before the next request
        return {"id": None, "error": {"code": 429, "message": "rate limit exceeded"}}

    endpoint.answer = metered  # type: ignore[method-assign]
    endpoints = asking(retries=2, compute_units_per_second=10_000)
    assert endpoints.ask(BALANCES) == ["0x0"] * 40
    assert sum(refused) >= 800, "the first request was refused"
    bucket = endpoints._all[0].bucket
    assert bucket.throttles
    assert bucket.rate < 10_000


def test_what_the_own_rate_limit_holds_back_does_not_time_out(
    endpoint: FakeEndpoint, asking: Make
) -> None:
    endpoint.faults = [HttpFault(429)]
    began = time.monotonic()
    endpoints = asking(compute_units_per_second=1_000, timeout=0.2, batch_size=10)
    assert len(endpoints.ask(BALANCES * 3)) == len(BALANCES) * 3  # 2,400 compute units
    assert time.monotonic() - began > 2 * 0.2  # much longer than the timeout


def test_an_endpoint_that_never_answers_costs_the_timeout_only(
    endpoint: FakeEndpoint, asking: Make
) -> None:
    endpoint.latency = MAX_WAIT
    began = time.monotonic()
    with pytest.raises(ForkError, match=r"127\.0\.0\.1"):
        asking(timeout=0.2, retries=1).ask([CHAIN_ID])
    assert time.monotonic() - began < MAX_WAIT


def test_another_address_takes_over_at_once(endpoint: FakeEndpoint, asking: Make) -> None:
    other = FakeEndpoint()
    try:
        endpoint.faults = [HttpFault(500, times=99)]
        endpoints = asking(endpoint.url, other.url, backoff=MAX_WAIT)
        began = time.monotonic()
        for _ in range(6):
            endpoints.ask([CHAIN_ID])
        assert time.monotonic() - began < MAX_WAIT
        assert len(endpoint.bodies) == 1  # the later calls avoid this URL
    finally:
        other.close()


def test_addresses_are_used_in_turn(endpoint: FakeEndpoint, asking: Make) -> None:
    other = FakeEndpoint()
    try:
        endpoints = asking(endpoint.url, other.url)
        for _ in range(6):
            endpoints.ask([CHAIN_ID])
        assert len(endpoint.bodies) == len(other.bodies) == 3
    finally:
        other.close()


def test_a_request_that_is_slower_than_most_is_sent_twice(
    endpoint: FakeEndpoint, asking: Make
) -> None:
    endpoints = asking(timeout=MAX_WAIT)
    for _ in range(MIN_LATENCIES):
        endpoints.ask([CHAIN_ID])
    first, slow = threading.Lock(), threading.Event()

    def once(*_: Any) -> str:
        if first.acquire(blocking=False):
            slow.wait(MAX_WAIT)
        return "0x1"

    endpoint.methods["eth_chainId"] = once
    assert endpoints.ask([CHAIN_ID]) == ["0x1"]
    slow.set()
    assert endpoints.counters.hedges == 1


@pytest.mark.parametrize("method", ["eth_sendRawTransaction", "evm_mine", "anvil_setBalance"])
def test_what_changes_something_is_never_sent_twice(
    endpoint: FakeEndpoint, asking: Make, method: str
) -> None:
    endpoint.faults = [HttpFault(502)]
    with pytest.raises(ForkError):
        asking().ask([RpcCall(method, ("0x00",))])
    assert len(endpoint.bodies) == 1


def test_a_block_that_one_machine_lacks_is_asked_for_again(
    endpoint: FakeEndpoint, asking: Make
) -> None:
    answers = iter([RpcError(-32000, "header not found"), "0x7"])

    def lagging(*_: Any) -> str:
        found = next(answers)
        if isinstance(found, RpcError):
            raise found
        return found

    endpoint.methods["eth_getBalance"] = lagging
    assert asking().ask(BALANCES[:1]) == ["0x7"]


def test_null_for_a_block_that_was_seen_is_asked_again(
    endpoint: FakeEndpoint, asking: Make
) -> None:
    answers = iter([None, None, {"hash": "0x"}, None])
    endpoint.methods["eth_getBlockByNumber"] = lambda *_: next(answers)
    seen = RpcCall("eth_getBlockByNumber", ("0x1", False), exists=True)
    assert asking().ask([seen]) == [{"hash": "0x"}]
    assert asking().ask([RpcCall("eth_getBlockByNumber", ("0x1", False))]) == [None]


def test_an_error_of_execution_is_an_answer(endpoint: FakeEndpoint, asking: Make) -> None:
    def reverts(*_: Any) -> str:
        raise RpcError(3, "execution reverted: ERC20: transfer amount exceeded its limit")

    endpoint.methods["eth_call"] = reverts
    [answer] = asking().ask([RpcCall("eth_call", ({}, "latest"))])
    assert isinstance(answer, RpcRefusal)
    assert len(endpoint.bodies) == 1


def test_answers_are_read_up_to_a_limit(
    endpoint: FakeEndpoint, asking: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint.methods["eth_getBalance"] = lambda *_: "0x" + "1" * 2_000
    # needs retries, because the server may reset a connection that it closes
    endpoints = asking(retries=5, timeout=MAX_WAIT)
    for item in endpoints._all:
        item._options["max_answer"] = 10_000
    assert len(endpoints.ask(BALANCES)) == 40  # asks again in smaller batches
    endpoint.methods["eth_getBalance"] = lambda *_: "0x" + "1" * 20_000
    with pytest.raises(ForkError, match="more than 10000 bytes"):
        endpoints.ask(BALANCES[:1])


def test_closing_ends_who_waits(endpoint: FakeEndpoint, asking: Make) -> None:
    endpoint.faults = [HttpFault(429, b"", {"Retry-After": "5"})]
    endpoints = asking()
    threading.Timer(0.2, endpoints.close).start()
    with pytest.raises(ForkError, match="closed"):
        endpoints.ask([CHAIN_ID])


def test_a_connection_that_was_closed_meanwhile_costs_no_wait(
    endpoint: FakeEndpoint, asking: Make
) -> None:
    endpoints = asking(backoff=30.0)
    endpoints.ask([CHAIN_ID])
    endpoint.faults = [HttpFault(0)]
    assert endpoints.ask([CHAIN_ID]) == [hex(endpoint.chain_id)]
    assert endpoints.counters.retries == 0


def test_a_forked_process_uses_connections_of_its_own(endpoint: FakeEndpoint, asking: Make) -> None:
    endpoints = asking()
    endpoints.ask([CHAIN_ID])
    child = os.fork()
    if child == 0:
        os._exit(0 if endpoints.ask([CHAIN_ID]) == [hex(endpoint.chain_id)] else 1)
    assert os.waitpid(child, 0)[1] == 0
    endpoints.ask([CHAIN_ID])
    assert endpoint.connections == 2


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/v2/SECRETKEY0123456789", "http://no.invalid"])
def test_an_address_where_nobody_listens_fails_at_once(asking: Make, url: str) -> None:
    """A second attempt would come after a pause of a minute."""
    with pytest.raises(ForkError, match=r"127\.0\.0\.1:1|no\.invalid") as caught:
        asking(url, backoff=60.0).ask([CHAIN_ID])
    assert "SECRET" not in str(caught.value)


def test_of_several_addresses_the_one_that_listens_is_asked(
    endpoint: FakeEndpoint, asking: Make
) -> None:
    urls = ["http://127.0.0.1:1", "http://no.invalid", endpoint.url]
    for _ in range(3):
        assert asking(*urls).ask([CHAIN_ID]) == [hex(endpoint.chain_id)]


def test_one_that_answered_before_is_waited_for(endpoint: FakeEndpoint, asking: Make) -> None:
    endpoints = asking(retries=1, backoff=0.01)
    endpoints.ask([CHAIN_ID])
    endpoint.close()
    endpoints._all[0].close()  # closes the connection that is still open
    with pytest.raises(ForkError, match=r"after 2 attempts"):
        endpoints.ask([CHAIN_ID])
