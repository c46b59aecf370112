"""Tests that a fork tries each read method once, and avoids a method that gave wrong values."""

from collections.abc import Callable

import pytest

from fastevm.core.state.source import RemoteAccount, Wanted
from fastevm.errors import ForkError
from fastevm.fork import RemoteSource
from fastevm.fork.call_hints import MAX_TRACED
from fastevm.fork.capabilities import Capability

from .fake_endpoint import HEAD, FakeEndpoint, RpcError, Ways

ALICE, TOKEN, POOL = b"\xa1" * 20, b"\x70" * 20, b"\x80" * 20
CALL = {"from": "0x" + ALICE.hex(), "to": "0x" + TOKEN.hex(), "data": "0x01"}
Open = Callable[..., RemoteSource]


@pytest.fixture
def ways(endpoint: FakeEndpoint) -> Ways:
    """Provides two contracts with 100 slots each. A call accesses ten slots of each contract."""
    for address in (TOKEN, POOL):
        endpoint.accounts[address] = RemoteAccount(3, 1, bytes([0x60]) * 3000)
        endpoint.slots.update({((address, slot), slot * 7 + 1) for slot in range(100)})
    found = Ways(endpoint)
    found.touched = {TOKEN: list(range(10)), POOL: list(range(10))}
    return found


def able(source: RemoteSource, capability: Capability) -> bool | None:
    return source.session.capabilities.get(capability)


def test_a_call_costs_one_round_trip_where_prestates_are_traced(
    endpoint: FakeEndpoint, ways: Ways, source_of: Open
) -> None:
    ways.serve("debug_traceCall", "eth_createAccessList")
    source = source_of(10)
    endpoint.forget()
    found = source.fetch(Wanted(accounts={TOKEN}, calls=[CALL]))
    assert len(endpoint.bodies) == 1
    assert found.accounts.keys() == {ALICE, TOKEN, POOL}
    assert found.accounts[POOL] == endpoint.accounts[POOL]
    assert len(found.slots) == 20
    assert found.slots[(POOL, 9)] == 64
    source.fetch(Wanted(accounts={b"\x01" * 20}, calls=[CALL]))
    # access lists are not requested any more
    assert len(endpoint.asked("eth_createAccessList")) == 1


def test_a_call_costs_two_round_trips_on_standard_methods(
    endpoint: FakeEndpoint, ways: Ways, source_of: Open
) -> None:
    ways.serve("eth_createAccessList")
    source = source_of(10)
    endpoint.forget()
    found = source.fetch(Wanted(accounts={TOKEN}, calls=[CALL]))
    assert len(endpoint.bodies) == source.counters.round_trips - 1 == 2
    assert found.accounts.keys() == {ALICE, TOKEN, POOL}
    assert found.slots[(TOKEN, 3)] == 22
    assert len(found.slots) == 20
    source.fetch(Wanted(accounts={b"\x01" * 20}, calls=[CALL]))
    assert len(endpoint.asked("debug_traceCall")) == 1


def test_an_endpoint_with_neither_gives_what_is_wanted(
    endpoint: FakeEndpoint, ways: Ways, source_of: Open
) -> None:
    source = source_of(10)
    endpoint.forget()
    found = source.fetch(Wanted(accounts={TOKEN}, slots={(POOL, 4)}, calls=[CALL]))
    assert len(endpoint.bodies) == 1
    assert found.slots == {(POOL, 4): 29}


def test_a_call_that_reverts_is_no_reason_to_stop_asking(
    endpoint: FakeEndpoint, ways: Ways, source_of: Open
) -> None:
    def fails(*_: object) -> None:
        raise RpcError(3, "execution reverted: insufficient balance")

    endpoint.methods["debug_traceCall"] = endpoint.methods["eth_createAccessList"] = fails
    source = source_of(10)
    source.fetch(Wanted(accounts={TOKEN}, calls=[CALL]))
    assert able(source, Capability.PRESTATE) is able(source, Capability.ACCESS_LIST) is None


def test_a_prestate_that_a_read_contradicts_is_not_used(
    endpoint: FakeEndpoint, ways: Ways, source_of: Open
) -> None:
    ways.serve("debug_traceCall")
    ways.wrong = 1
    source = source_of(10)
    found = source.fetch(Wanted(accounts={TOKEN}, calls=[CALL]))
    assert able(source, Capability.PRESTATE) is False
    assert found.accounts[POOL].balance == found.accounts[TOKEN].balance == 3


def test_slots_of_a_prestate_are_compared_in_the_next_round_trip(
    endpoint: FakeEndpoint, ways: Ways, source_of: Open
) -> None:
    ways.serve("debug_traceCall")
    source = source_of(10)
    source.fetch(Wanted(accounts={TOKEN}, calls=[CALL]))
    for slot in range(10):
        endpoint.slots[(TOKEN, slot)] = endpoint.slots[(POOL, slot)] = 5
    with pytest.raises(ForkError, match="differs from its prestate traces"):
        source.fetch(Wanted(accounts={b"\x01" * 20}))
    assert able(source, Capability.PRESTATE) is False


@pytest.mark.parametrize(
    ("method", "capability"),
    [
        ("eth_getStorageValues", Capability.STORAGE_VALUES),
        ("eth_simulateV1", Capability.SIMULATE_READER),
        ("eth_call", Capability.CALL_READER),
    ],
)
def test_many_slots_come_in_one_call_once_its_way_is_known(
    endpoint: FakeEndpoint, ways: Ways, source_of: Open, method: str, capability: Capability
) -> None:
    ways.serve(method)
    source = source_of(10)
    low = {(item, slot) for item in (TOKEN, POOL) for slot in range(40)}
    for part in range(3):  # each fetch tries one method
        source.fetch(Wanted(slots={(item, slot + part * 100) for item, slot in low}))
    assert able(source, capability) is True
    endpoint.forget()
    found = source.fetch(Wanted(slots={(item, 50 + slot) for item, slot in low}))
    assert {key: endpoint.slots.get(key, 0) for key in found.slots} == found.slots
    assert len(found.slots) == 80
    assert len(endpoint.asked(method)) == (2 if method == "eth_call" else 1)
    assert not endpoint.asked("eth_getStorageAt")


@pytest.mark.parametrize("method", ["eth_getStorageValues", "eth_simulateV1", "eth_call"])
def test_a_way_that_gives_other_values_than_reads_is_never_used(
    endpoint: FakeEndpoint, ways: Ways, source_of: Open, method: str
) -> None:
    ways.serve(method)
    ways.wrong = 1
    source = source_of(10)
    for part in range(4):
        keys = {(TOKEN, slot) for slot in range(part * 40, part * 40 + 40)}
        found = source.fetch(Wanted(slots=keys))
        assert found.slots == {key: endpoint.slots.get(key, 0) for key in keys}
    assert True not in [
        able(source, item) for item in Capability if item is not Capability.BLOCK_HASH
    ]


def test_a_way_that_ends_is_left_within_the_same_fetch(
    endpoint: FakeEndpoint, ways: Ways, source_of: Open
) -> None:
    ways.serve("eth_getStorageValues")
    source = source_of(10)
    source.fetch(Wanted(slots={(TOKEN, 0)}))
    endpoint.refused.add("eth_getStorageValues")
    assert source.fetch(Wanted(slots={(TOKEN, 1)})).slots == {(TOKEN, 1): 8}


def test_an_account_comes_in_one_call_where_that_is_served_and_right(
    endpoint: FakeEndpoint, ways: Ways, source_of: Open
) -> None:
    ways.serve("eth_getAccountInfo")
    source = source_of(10)
    source.fetch(Wanted(accounts={TOKEN}))
    endpoint.forget()
    assert source.fetch(Wanted(accounts={POOL})).accounts[POOL] == endpoint.accounts[POOL]
    assert len(endpoint.calls()) == 1


def test_a_code_that_is_known_is_not_sent_again(
    endpoint: FakeEndpoint, ways: Ways, source_of: Open
) -> None:
    ways.serve("eth_getAccount")
    source = source_of(10)
    source.fetch(Wanted(accounts={TOKEN, POOL}))
    source.at(11).fetch(Wanted(accounts={TOKEN}))  # also tries eth_getAccount
    endpoint.forget()
    assert source.at(12).fetch(Wanted(accounts={TOKEN})).accounts[TOKEN] == endpoint.accounts[TOKEN]
    assert not endpoint.asked("eth_getCode")
    endpoint.accounts[POOL] = RemoteAccount(9, 9, b"\x01" * 4000)
    assert source.at(13).fetch(Wanted(accounts={POOL})).accounts[POOL] == endpoint.accounts[POOL]
    assert len(endpoint.asked("eth_getCode")) == 1


def test_the_target_of_a_delegation_comes_with_the_account(
    endpoint: FakeEndpoint, source_of: Open
) -> None:
    endpoint.accounts[ALICE] = RemoteAccount(1, 1, bytes.fromhex("ef0100") + TOKEN)
    endpoint.accounts[TOKEN] = RemoteAccount(0, 1, b"\x00")
    found = source_of(10).fetch(Wanted(accounts={ALICE}))
    assert found.accounts[TOKEN] == endpoint.accounts[TOKEN]


def test_the_parents_hash_and_the_block_itself_need_no_question(
    endpoint: FakeEndpoint, source_of: Open
) -> None:
    source = source_of(10)
    endpoint.forget()
    assert source.fetch(Wanted(block_hashes={9})).block_hashes.keys() == {9}
    assert not endpoint.bodies


def test_hashes_of_blocks_are_not_taken_from_another_branch(
    endpoint: FakeEndpoint, source_of: Open
) -> None:
    source = source_of(10)
    endpoint.branch = 1
    with pytest.raises(ForkError, match="reorganised away"):
        source.fetch(Wanted(block_hashes={5}))


def test_capabilities_are_remembered_from_one_process_to_the_next(
    endpoint: FakeEndpoint, ways: Ways, source_of: Open
) -> None:
    ways.serve("debug_traceCall", "eth_getStorageValues")
    endpoint.batch_limit = 7
    first = source_of(10, cache=True)
    first.fetch(Wanted(accounts={TOKEN}, slots={(TOKEN, 50)}, calls=[CALL]))
    first.close()
    second = source_of(HEAD, cache=True)
    assert able(second, Capability.PRESTATE) is True
    assert able(second, Capability.STORAGE_VALUES) is True
    assert second.session.endpoints.batch_limit == 7


def test_calls_of_different_functions_are_traced_first(
    endpoint: FakeEndpoint, ways: Ways, source_of: Open
) -> None:
    same = [{"to": "0x" + TOKEN.hex(), "data": f"0xaaaaaaaa{n:064x}"} for n in range(100)]
    other = [{"to": "0x" + POOL.hex(), "data": "0xbbbbbbbb", "gasPrice": "0x1", "nonce": "0x7"}]
    source_of(10).fetch(Wanted(accounts={TOKEN}, calls=[*same, *other, *same]))
    traced = [params[0] for params in endpoint.asked("debug_traceCall")]
    assert len(traced) == MAX_TRACED
    assert {"to": "0x" + POOL.hex(), "data": "0xbbbbbbbb"} in traced
    assert len(endpoint.asked("eth_createAccessList")) == 101


def test_access_lists_are_asked_by_number_where_only_that_is_understood(
    endpoint: FakeEndpoint, ways: Ways, source_of: Open
) -> None:
    def by_number(call: object, at: object) -> object:
        if isinstance(at, dict):
            raise RpcError(-32602, "invalid argument 1: expected a string")
        return ways.eth_createAccessList(call, at)

    endpoint.methods["eth_createAccessList"] = by_number
    source = source_of(10)
    source.fetch(Wanted(accounts={TOKEN}, calls=[CALL, {**CALL, "data": "0x02"}]))
    found = source.fetch(Wanted(accounts={b"\x01" * 20}, calls=[CALL]))
    assert len(found.slots) == 20
    assert able(source, Capability.ACCESS_LIST) is True
