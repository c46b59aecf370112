"""Tests bundles on a fork in worker processes, which get the fetched values and use no network."""

import http.client
import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

import pytest

from fastevm import simulate_many
from fastevm.bench.remote import market
from fastevm.bench.remote.market_nodes import Upstream
from fastevm.bench.remote.proxy import Proxy
from tests.fork.test_calls import forked

BUNDLES = 400
SPAWN = multiprocessing.get_context("spawn")


def go_offline() -> None:
    """Makes every new HTTP connection of this process fail."""

    def refuse(self: http.client.HTTPConnection) -> None:
        raise OSError("a worker asked the network")

    http.client.HTTPConnection.connect = refuse  # type: ignore[method-assign]


@pytest.fixture
def proxy(own: Upstream) -> Iterator[Proxy]:
    with Proxy(own.url) as found:
        yield found


@pytest.fixture(scope="module")
def expected(own: Upstream) -> list[bytes]:
    """Returns the outputs of the bundles on threads of this process."""
    with Proxy(own.url) as proxy:
        results = simulate_many(forked(proxy, own).state, bundles())
        return [result.calls[-1].output for result in results]


def bundles() -> list[list[dict[str, str]]]:
    return [market.bundle(number) for number in range(BUNDLES)]


def test_workers_of_a_dask_cluster_stay_offline(
    own: Upstream, proxy: Proxy, expected: list[bytes]
) -> None:
    distributed = pytest.importorskip("distributed")
    machine = forked(proxy, own)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.run(go_offline)
        results = list(simulate_many(machine.state, bundles(), executor=client.get_executor()))
    assert [result.calls[-1].output for result in results] == expected
    assert all(result.success for result in results)


def test_workers_of_a_process_pool_stay_offline(
    own: Upstream, proxy: Proxy, expected: list[bytes]
) -> None:
    machine = forked(proxy, own)
    with ProcessPoolExecutor(2, SPAWN, initializer=go_offline) as pool:
        results = list(simulate_many(machine.state, bundles(), executor=pool))
    assert [result.calls[-1].output for result in results] == expected


def test_what_is_known_is_not_fetched_again_for_workers(own: Upstream, proxy: Proxy) -> None:
    machine = forked(proxy, own)
    list(simulate_many(machine.state, bundles()))
    proxy.count_anew()
    with ProcessPoolExecutor(2, SPAWN, initializer=go_offline) as pool:
        assert all(r.success for r in simulate_many(machine.state, bundles(), executor=pool))
    assert proxy.count_anew().requests == 0
