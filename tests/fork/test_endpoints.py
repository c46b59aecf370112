"""Tests faulty endpoints: all values are right, or an error names the endpoint and a remedy."""

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fastevm.bench.remote.market_nodes import Upstream
from fastevm.bench.remote.proxy import Endpoint, Proxy
from fastevm.errors import ForkError
from fastevm.fork.remote_source import RemoteSource
from tests.faults import faulty_endpoints as faulty
from tests.fork import truth
from tests.max_wait import MAX_WAIT

KEY = "k3y-of-a-customer"
HURRIED = {"timeout": 1.0, "backoff": 0.02, "retries": 4, "progress": False}
HURRIED["compute_units_per_second"] = 20_000
Made = Callable[[], Endpoint]

# Name -> an endpoint whose faults the client overcomes, so that all values are read.
SURMOUNTABLE: dict[str, Made] = {
    "nothing wrong": Endpoint,
    "batches of 10": lambda: faulty.BatchLimit(10),
    "batches of 10 by status": lambda: faulty.BatchLimit(10, form="status"),
    "batches of 10 for each": lambda: faulty.BatchLimit(10, form="each"),
    "no batches": faulty.NoBatches,
    "no batches by status 400": lambda: faulty.NoBatches(400),
    "no batches by status 403": lambda: faulty.NoBatches(403),
    "standard methods only": lambda: faulty.Refuses(faulty.PREFETCH),
    "a method spoils its batch": lambda: faulty.Refuses(faulty.PREFETCH, whole_request=True),
    "methods by status 403": lambda: faulty.Refuses(faulty.PREFETCH, status=403),
    "methods of a paid tier": lambda: faulty.Refuses(
        faulty.PREFETCH, -32600, "this method is not available on the free tier"
    ),
    "429 without Retry-After": lambda: faulty.TooMany(3, first=1),
    "429 with Retry-After": lambda: faulty.TooMany(1, first=1, retry_after=0.3),
    "429 as an error": lambda: faulty.TooMany(3, first=1, form="error"),
    "429 for each": lambda: faulty.TooMany(3, first=1, form="each"),
    "429 at once": lambda: faulty.TooMany(2),
    "bad gateways": lambda: faulty.Fails(3, first=1),
    "unavailable": lambda: faulty.Fails(3, status=503),
    "time-outs of the gateway": lambda: faulty.Fails(2, first=1, status=504, body=b""),
    "cut before an answer": lambda: faulty.Cuts(3, first=1),
    "cut within an answer": lambda: faulty.Cuts(3, first=1, within=True),
    "cut at once": lambda: faulty.Cuts(2),
    "stalls": lambda: faulty.Stalls(3.0, first=1),
    "answers in another order": lambda: faulty.Answers(faulty.shuffled),
    "wrong ids": lambda: faulty.Answers(faulty.with_wrong_ids, 2, first=1),
    "an answer missing": lambda: faulty.Answers(faulty.with_one_missing, 2, first=1),
    "an answer twice": lambda: faulty.Answers(faulty.with_one_twice, 2, first=1),
    "a page of a portal": lambda: faulty.Answers(faulty.not_json, 2, first=1),
    "half an answer": lambda: faulty.Answers(faulty.halved, 2, first=1),
}
# Name -> an endpoint from which nothing can be read, and a part of the error.
HOPELESS: dict[str, tuple[Made, str]] = {
    "429 for ever": (lambda: faulty.TooMany(faulty.WIDE, first=1), r"429"),
    "429 as an error for ever": (
        lambda: faulty.TooMany(faulty.WIDE, first=1, form="error"), r"compute units"
    ),
    "bad gateways for ever": (lambda: faulty.Fails(faulty.WIDE, first=1), r"502"),
    "cut for ever": (lambda: faulty.Cuts(faulty.WIDE, first=1), r""),
    "cut within for ever": (lambda: faulty.Cuts(faulty.WIDE, first=1, within=True), r""),
    "stalls for ever": (lambda: faulty.Stalls(3.0, faulty.WIDE, first=1), r"within|timed out"),
    "wrong ids for ever": (lambda: faulty.Answers(faulty.with_wrong_ids, first=1), r""),
    "pages of a portal": (lambda: faulty.Answers(faulty.not_json, first=1), r"JSON"),
    "half answers for ever": (lambda: faulty.Answers(faulty.halved, first=1), r"JSON"),
    "nulls": (lambda: faulty.Answers(faulty.nothing, first=1), r""),
    "numbers": (lambda: faulty.Answers(faulty.of_wrong_type, first=1), r""),
    "no state methods": (
        lambda: faulty.Refuses(
            [*faulty.PREFETCH, "eth_getStorageAt", "eth_getBalance", "eth_getCode", "eth_call"]
        ),
        r"does not exist|not available",
    ),
    "no archive": (lambda: faulty.Pruned(()), r"archive|newer block"),
}  # fmt: skip


@pytest.fixture
def proxy(own: Upstream) -> Iterator[Proxy]:
    with Proxy(own.url, key=KEY) as found:
        yield found


def opened(url: str, tmp_path: Path, **options: Any) -> RemoteSource:
    chosen: dict[str, Any] = {"block": "latest", "cache": tmp_path, **HURRIED, **options}
    return RemoteSource.open(url, chosen.pop("block"), **chosen)


def check_text(error: ForkError, proxy: Proxy) -> None:
    """Asserts that an error names the endpoint and contains no API key."""
    text = str(error)
    assert KEY not in text and KEY not in repr(error.__context__)
    assert re.search(r"127\.0\.0\.1:\d+", text), text


@pytest.mark.parametrize("name", SURMOUNTABLE)
def test_everything_is_found(own: Upstream, proxy: Proxy, tmp_path: Path, name: str) -> None:
    proxy.endpoint = SURMOUNTABLE[name]()
    wanted = truth.small() if name.startswith("no batches") else truth.wide()
    with opened(proxy.url, tmp_path) as source:
        found = source.fetch(wanted)
    assert found.accounts.keys() >= wanted.accounts
    assert found.slots.keys() >= wanted.slots
    assert found.block_hashes.keys() >= wanted.block_hashes
    assert not truth.differences(own, found, own.head)


@pytest.mark.parametrize("name", HOPELESS)
def test_the_error_says_what_is_wrong(proxy: Proxy, tmp_path: Path, name: str) -> None:
    made, words = HOPELESS[name]
    proxy.endpoint = made()
    started = time.monotonic()
    with (
        pytest.raises(ForkError, match=words or ".") as caught,
        opened(proxy.url, tmp_path) as source,
    ):
        source.fetch(truth.small())
    check_text(caught.value, proxy)
    assert time.monotonic() - started < MAX_WAIT


def test_nobody_there_is_reported(tmp_path: Path) -> None:
    with Proxy("http://127.0.0.1:1", key=KEY) as gone:
        url = gone.url
    with pytest.raises(ForkError) as caught:
        opened(url, tmp_path, retries=1)
    check_text(caught.value, gone)


def test_a_wrong_key_is_reported(proxy: Proxy, tmp_path: Path) -> None:
    with pytest.raises(ForkError, match="401") as caught:
        opened(proxy.url.replace(KEY, "another-key-of-ours"), tmp_path)
    assert "another-key-of-ours" not in str(caught.value)


def test_a_retry_waits_as_long_as_it_is_reported(proxy: Proxy, tmp_path: Path) -> None:
    limited = proxy.endpoint = faulty.TooMany(1, first=1, retry_after=1.0)
    started = time.monotonic()
    with opened(proxy.url, tmp_path) as source:
        source.fetch(truth.small())
    assert time.monotonic() - started >= 1.0
    assert len(limited.refused) == 1


def test_a_second_address_helps_a_first_that_fails(
    own: Upstream, proxy: Proxy, tmp_path: Path
) -> None:
    proxy.endpoint = faulty.Fails(faulty.WIDE, first=1)
    with Proxy(own.url) as other, opened([proxy.url, other.url], tmp_path) as source:  # type: ignore[arg-type]
        found = source.fetch(truth.wide())
    assert not truth.differences(own, found, own.head)


def test_a_second_address_helps_a_first_that_stalls(
    own: Upstream, proxy: Proxy, tmp_path: Path
) -> None:
    proxy.endpoint = faulty.Stalls(0.8, faulty.WIDE, first=1)
    with Proxy(own.url) as other, opened([proxy.url, other.url], tmp_path) as source:  # type: ignore[arg-type]
        found = source.fetch(truth.wide())
    assert not truth.differences(own, found, own.head)


def test_headers_reach_the_endpoint(proxy: Proxy, tmp_path: Path) -> None:
    with opened(proxy.url, tmp_path, headers={"X-Api-Key": "abc"}) as source:
        source.fetch(truth.small())
    assert all(each.get("X-Api-Key") == "abc" for each in proxy.headers)


def test_a_bucket_of_calls_is_kept_within(own: Upstream, proxy: Proxy, tmp_path: Path) -> None:
    proxy.endpoint = faulty.Limited(calls_per_second=200, burst=100)
    with opened(proxy.url, tmp_path, retries=8, timeout=MAX_WAIT, batch_size=50) as source:
        found = source.fetch(truth.wide(tokens=20))
    assert not truth.differences(own, found, own.head)
