"""Tests that calls, bundles and blocks on a fork have the upstream's results, in few requests."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fastevm import EVM, simulate_many
from fastevm.bench.options import DEFAULT_CASES
from fastevm.bench.programs.cases import named
from fastevm.bench.remote import market
from fastevm.bench.remote.market_nodes import Upstream
from fastevm.bench.remote.proxy import Proxy
from tests.faults import faulty_endpoints as faulty

STANDARD_TRIPS = 3  # round trips of a cold call, if the endpoint has only the standard methods
TRACED_TRIPS = 1  # round trips of a cold call, if prestate traces are known to be available
MANY_TRIPS = 10  # round trips of a thousand bundles
MANY = 1_000
# Description -> the methods that the endpoint rejects. Reads of single values always work.
LADDER: dict[str, tuple[str, ...]] = {
    "everything": (),
    "no traces": tuple(name for name in faulty.PREFETCH if name.startswith("debug_")),
    "no traces, no lists": tuple(
        name for name in faulty.PREFETCH
        if name.startswith("debug_") or name == "eth_createAccessList"
    ),
    "lists only": tuple(name for name in faulty.PREFETCH if name != "eth_createAccessList"),
    "proofs only": tuple(name for name in faulty.PREFETCH if name != "eth_getProof"),
    "standard methods only": faulty.PREFETCH,
    "no calls with overrides either": (*faulty.PREFETCH, "eth_call"),
}  # fmt: skip
CALLS: dict[str, dict[str, str]] = {
    "balanceOf": market.balance_call(1, 3),
    "balanceOf behind a proxy": market.balance_call(0, 3),
    "multicall": market.multicall(3),
    "swap": market.swap(),
}


@pytest.fixture
def proxy(either: Upstream) -> Iterator[Proxy]:
    with Proxy(either.url) as found:
        yield found


def forked(proxy: Proxy, upstream: Upstream, **options: Any) -> EVM:
    # At the newest block, a fork of anvil would also ask whether the block is still the newest.
    block = upstream.head - 1
    chosen: dict[str, Any] = {"block": block, "cache": False, "progress": False, **options}
    return EVM.fork(proxy.url, **chosen)


def call(machine: EVM, message: dict[str, str]) -> bytes:
    result = machine.call(
        message["to"], message["data"], sender=message["from"], gas=int(message["gas"], 16)
    )
    assert result.success, result.error
    return result.output


def said(upstream: Upstream, message: dict[str, str]) -> bytes:
    return bytes.fromhex(upstream.ask("eth_call", message, "latest")[2:])


@pytest.mark.parametrize("served", LADDER)
@pytest.mark.parametrize("name", CALLS)
def test_a_call_gives_what_the_upstream_gives(
    either: Upstream, proxy: Proxy, name: str, served: str
) -> None:
    proxy.endpoint = faulty.Refuses(LADDER[served])
    machine = forked(proxy, either)
    proxy.count_anew()
    assert call(machine, CALLS[name]) == said(either, CALLS[name])
    assert proxy.count_anew().requests > 0
    assert call(machine, CALLS[name]) == said(either, CALLS[name])
    assert proxy.count_anew().requests == 0, "warm"


@pytest.mark.parametrize("name", ["balanceOf", "multicall"])
def test_few_round_trips_on_standard_methods(either: Upstream, proxy: Proxy, name: str) -> None:
    refused = [each for each in faulty.PREFETCH if each != "eth_createAccessList"]
    proxy.endpoint = faulty.Refuses(refused)
    # The process now knows which methods the endpoint has.
    call(forked(proxy, either), CALLS[name])
    machine = forked(proxy, either)
    proxy.count_anew()
    call(machine, CALLS[name])
    assert proxy.count_anew().round_trips <= STANDARD_TRIPS


@pytest.mark.parametrize("name", CALLS)
def test_one_round_trip_where_traces_are_served(
    either: Upstream, proxy: Proxy, tmp_path: Path, name: str
) -> None:
    first = forked(proxy, either, cache=tmp_path)
    call(first, market.balance_call(7, 7))  # The cache now contains which methods the endpoint has.
    machine = forked(proxy, either, cache=tmp_path)
    proxy.count_anew()
    call(machine, CALLS[name])
    assert proxy.count_anew().round_trips <= TRACED_TRIPS


@pytest.mark.parametrize("served", ["everything", "lists only"])
def test_a_thousand_bundles_share_their_round_trips(
    either: Upstream, proxy: Proxy, served: str
) -> None:
    proxy.endpoint = faulty.Refuses(LADDER[served])
    bundles = [market.bundle(number) for number in range(MANY)]
    machine = forked(proxy, either)
    proxy.count_anew()
    results = list(simulate_many(machine.state, bundles))
    assert proxy.count_anew().round_trips <= MANY_TRIPS
    assert all(result.success for result in results)
    for number in (0, 17, 999):
        said = either.ask(
            "eth_simulateV1", {"blockStateCalls": [{"calls": bundles[number]}]}, "latest"
        )
        outputs = [each["returnData"] for each in said[0]["calls"]]
        assert ["0x" + each.output.hex() for each in results[number].calls] == outputs


def test_the_cases_of_the_bench_cost_what_they_cost_in_memory(
    either: Upstream, proxy: Proxy
) -> None:
    machine, files = forked(proxy, either), named(DEFAULT_CASES)
    sampled = [name for name in market.lone_cases() if not name.startswith(("call/", "create/"))]
    for name in sampled[::4]:
        case, (place, account) = files[name], market.lone_cases()[name]
        local = EVM(machine.schedule)
        slots = {int(k, 16): int(v, 16) for k, v in account.get("storage", {}).items()}
        local.set_account(place, int(account.get("balance", "0x0"), 16), 1, account["code"], slots)
        gas = min(int(case["gas"]), 10**9)
        results = [
            each.call(place, case["calldata"], sender=case["caller"], gas=gas)
            for each in (machine, local)
        ]
        forked_one, local_one = results
        assert (forked_one.success, forked_one.gas_used) == (
            local_one.success, local_one.gas_used
        ), name  # fmt: skip
        assert forked_one.output == local_one.output, name


def test_local_changes_never_reach_another_fork(
    either: Upstream, proxy: Proxy, tmp_path: Path
) -> None:
    message, holder = CALLS["balanceOf"], market.holders()[3]
    first = forked(proxy, either, cache=tmp_path)
    before = call(first, message)
    result = first.transact(
        market.TOKEN_ADDRESSES[1],
        market.transfer(market.holders()[4].address, 5),
        sender=holder.address,
        gas_price=10**10,
    )
    assert result.success
    assert int.from_bytes(call(first, message), "big") == int.from_bytes(before, "big") - 5
    assert call(forked(proxy, either, cache=tmp_path), message) == before


def test_snapshots_go_back(either: Upstream, proxy: Proxy) -> None:
    machine = forked(proxy, either)
    before = call(machine, CALLS["swap"])
    with machine.snapshot():
        machine.transact(
            market.ROUTER_ADDRESS,
            market.swap_data(),
            sender=market.holders()[0].address,
            gas_price=10**10,
        )
        assert call(machine, CALLS["swap"]) != before
    assert call(machine, CALLS["swap"]) == before
