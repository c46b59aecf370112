"""Tests `RemoteSource`: its block, the fetched values, and errors."""

from collections.abc import Callable
from typing import Any

import pytest

from fastevm.core.state.source import RemoteAccount, Wanted
from fastevm.errors import ForkError
from fastevm.fork import RemoteSource

from .fake_endpoint import CHAIN_ID, HEAD, FakeEndpoint, HttpFault, RpcError, block, block_hash

ALICE, TOKEN = b"\xa1" * 20, b"\x70" * 20
Open = Callable[..., RemoteSource]


@pytest.mark.parametrize(
    ("block", "number"),
    [("latest", HEAD), ("safe", HEAD - 2), ("finalized", HEAD - 4), (7, 7), ("0x7", 7),
     (block_hash(9), 9), ("0x" + block_hash(9).hex(), 9)],
)  # fmt: skip
def test_a_source_opens_in_one_round_trip(
    endpoint: FakeEndpoint, source_of: Open, block: object, number: int
) -> None:
    source = source_of(block)
    assert (source.chain_id, source.block_number) == (CHAIN_ID, number)
    assert source.block_hash == block_hash(number)
    assert int(source.header["timestamp"], 16) == 1_700_000_000 + 12 * number
    assert len(endpoint.bodies) == source.counters.round_trips == 1


def test_a_negative_number_counts_from_the_newest_block(source_of: Open) -> None:
    assert source_of(-3).block_number == HEAD - 3


def test_an_address_may_name_its_block(endpoint: FakeEndpoint, source_of: Open) -> None:
    assert source_of(urls=f"{endpoint.url}@11").block_number == 11


def test_values_are_those_of_the_endpoint_by_block_hash(
    endpoint: FakeEndpoint, source_of: Open
) -> None:
    endpoint.accounts[TOKEN] = RemoteAccount(5, 1, b"\x60\x00")
    endpoint.slots[(TOKEN, 2**255)] = 77
    source = source_of(10)
    endpoint.forget()
    found = source.fetch(
        Wanted(accounts={ALICE, TOKEN}, slots={(TOKEN, 2**255), (TOKEN, 3)}, block_hashes={8})
    )
    assert found.accounts[TOKEN] == RemoteAccount(5, 1, b"\x60\x00")
    assert found.accounts[ALICE] == RemoteAccount(0, 0, b"")
    assert found.slots == {(TOKEN, 2**255): 77, (TOKEN, 3): 0}
    assert found.block_hashes == {8: block_hash(8)}
    assert len(endpoint.bodies) == 1
    at = {"blockHash": "0x" + block_hash(10).hex(), "requireCanonical": False}
    assert all(params[-1] == at for params in endpoint.asked("eth_getBalance"))


def test_an_endpoint_that_takes_numbers_only_is_checked_for_its_hash(
    endpoint: FakeEndpoint, source_of: Open
) -> None:
    endpoint.by_number = True
    endpoint.accounts[ALICE] = RemoteAccount(9, 0)
    source = source_of(10)
    assert source.fetch(Wanted(accounts={ALICE})).accounts[ALICE].balance == 9
    endpoint.branch = 1
    with pytest.raises(ForkError, match="reorganised away"):
        source.fetch(Wanted(accounts={TOKEN}))


def test_a_block_that_is_unknown_says_so_with_the_endpoint_and_what_to_do(
    endpoint: FakeEndpoint, source_of: Open
) -> None:
    with pytest.raises(ForkError, match=r"127\.0\.0\.1.*no block 999"):
        source_of(999)
    source = source_of(10)
    endpoint.branch = 1
    with pytest.raises(ForkError, match="archive node, or fork from a newer block"):
        source.fetch(Wanted(accounts={ALICE}))


def test_a_pruned_state_says_what_to_do(endpoint: FakeEndpoint, source_of: Open) -> None:
    def pruned(*_: object) -> str:
        raise RpcError(-32000, "missing trie node 00ff (path ) state 0x1 is not available")

    endpoint.methods["eth_getCode"] = pruned
    with pytest.raises(ForkError, match=r"missing trie node.*archive node"):
        source_of().fetch(Wanted(accounts={ALICE}))


@pytest.mark.parametrize("value", [None, 5, "0x" + "ff" * 33, "zz", [], {"a": 1}])
def test_a_value_of_a_wrong_form_is_an_error(
    endpoint: FakeEndpoint, source_of: Open, value: object
) -> None:
    endpoint.methods["eth_getStorageAt"] = lambda *_: value
    with pytest.raises(ForkError, match=r"127\.0\.0\.1.*eth_getStorageAt"):
        source_of().fetch(Wanted(slots={(TOKEN, 0)}))


def test_another_chain_than_expected_is_refused(source_of: Open) -> None:
    with pytest.raises(ForkError, match="expected chain 1, found 4242"):
        source_of(chain_id=1)


def test_a_sibling_reads_another_block_with_the_same_counters(
    endpoint: FakeEndpoint, source_of: Open
) -> None:
    source = source_of(10)
    sibling = source.at(11)
    assert (sibling.block_number, sibling.counters) == (11, source.counters)


def test_no_error_and_no_repr_holds_a_key(endpoint: FakeEndpoint, source_of: Open) -> None:
    url = endpoint.url.replace("//", "//me:pass-word@") + "/v2/SECRETKEY?token=OTHERKEY"
    endpoint.faults = [HttpFault(500, b"SECRETKEY", times=9)]
    with pytest.raises(ForkError) as error:
        source_of(urls=url, headers={"X-Key": "HEADERKEY"}, retries=1)
    endpoint.faults.clear()

    def said(*_: object) -> str:
        raise RpcError(-32000, f"key SECRETKEY and HEADERKEY of {url} are known")

    endpoint.methods["eth_getCode"] = said
    source = source_of(urls=url, headers={"X-Key": "HEADERKEY"})
    with pytest.raises(ForkError) as second:
        source.fetch(Wanted(accounts={ALICE}))
    for text in (str(error.value), str(second.value), repr(source), repr(source.counters)):
        assert not {"SECRETKEY", "OTHERKEY", "pass-word", "HEADERKEY"} & set(
            text.replace("/", " ").replace(":", " ").split()
        )
        assert "SECRETKEY" not in text
    assert endpoint.headers[-1]["X-Key"] == "HEADERKEY"


def test_a_sibling_of_a_blocks_object_needs_no_question(
    endpoint: FakeEndpoint, source_of: Open
) -> None:
    source = source_of(10)
    endpoint.forget()
    assert source.at(block(11)).block_hash == block_hash(11)
    assert not endpoint.bodies


@pytest.mark.parametrize("tag", ["latest", "safe"])
def test_a_server_that_does_not_know_its_newest_block_yet_is_asked_again(
    endpoint: FakeEndpoint, source_of: Open, tag: str
) -> None:
    real, left = endpoint.eth_getBlockByNumber, [2]

    def starting(name: str, full: bool) -> Any:
        left[0] -= name == tag
        return None if name == tag and left[0] >= 0 else real(name, full)

    endpoint.methods["eth_getBlockByNumber"] = starting
    assert source_of(tag).block_number in (18, HEAD)
