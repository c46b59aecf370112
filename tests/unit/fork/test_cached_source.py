"""Tests that cached values are not requested again, and offline errors name missing values."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fastevm.core.state.source import RemoteAccount, Wanted
from fastevm.errors import ForkError
from fastevm.fork import RemoteSource

from .fake_endpoint import HEAD, FakeEndpoint, RpcError, block, block_hash

ALICE, TOKEN = b"\xa1" * 20, b"\x70" * 20
WANTED = Wanted({ALICE, TOKEN}, {(TOKEN, 1), (TOKEN, 2)}, {3})
Open = Callable[..., RemoteSource]


@pytest.fixture(autouse=True)
def state(endpoint: FakeEndpoint) -> None:
    endpoint.accounts[TOKEN] = RemoteAccount(1, 2, b"\x60" * 50)
    endpoint.slots[(TOKEN, 1)] = 11


def test_values_are_asked_once_for_all_processes(endpoint: FakeEndpoint, source_of: Open) -> None:
    first = source_of(10, cache=True).fetch(WANTED)
    endpoint.forget()
    second = source_of(10, cache=True)
    assert second.fetch(WANTED) == first
    assert len(endpoint.bodies) == 1  # only the block was requested
    assert second.counters.hits == 4


def test_a_reorganised_block_has_values_of_its_own(endpoint: FakeEndpoint, source_of: Open) -> None:
    source_of(10, cache=True).fetch(WANTED)
    endpoint.branch = 1
    endpoint.slots[(TOKEN, 1)] = 12
    assert source_of(10, cache=True).fetch(WANTED).slots[(TOKEN, 1)] == 12


def test_chains_of_this_machine_are_distinguished_by_their_first_block(
    endpoint: FakeEndpoint, source_of: Open
) -> None:
    source_of(10, cache=True).fetch(WANTED)
    endpoint.methods["eth_getBlockByNumber"] = lambda tag, full: {
        **FakeEndpoint.eth_getBlockByNumber(endpoint, tag, full),
        **({"hash": "0x" + "99" * 32} if tag == "0x0" else {}),
    }
    endpoint.slots[(TOKEN, 1)] = 12
    assert source_of(10, cache=True).fetch(WANTED).slots[(TOKEN, 1)] == 12


def test_the_newest_state_of_a_development_chain_is_not_kept(
    endpoint: FakeEndpoint, source_of: Open, tmp_path: Path
) -> None:
    endpoint.chain_id = 31337
    source_of("latest", cache=True).fetch(WANTED)
    source_of(10, cache=True).at(block(HEAD)).fetch(WANTED)
    endpoint.slots[(TOKEN, 1)] = 12  # as anvil_setStorageAt does: mines no block
    assert source_of("latest", cache=True).fetch(WANTED).slots[(TOKEN, 1)] == 12
    assert source_of(10, cache=True).at(block(HEAD)).fetch(WANTED).slots[(TOKEN, 1)] == 12


@pytest.mark.parametrize("chosen", ["latest", HEAD, 10, -1])
@pytest.mark.parametrize("folder", ["default", "own"])
def test_values_of_a_development_chain_never_come_from_the_disk(
    endpoint: FakeEndpoint, source_of: Open, tmp_path: Path, chosen: str | int, folder: str
) -> None:
    endpoint.chain_id = 31337
    cache = True if folder == "default" else tmp_path / folder
    for value in (12, 13):
        endpoint.slots[(TOKEN, 1)] = value  # mines no block
        assert source_of(chosen, cache=cache).fetch(WANTED).slots[(TOKEN, 1)] == value
    if folder == "own" and chosen != -1:  # offline, -1 counts from a different block
        offline = source_of(chosen, cache=cache, offline=True)
        assert offline.fetch(WANTED).slots[(TOKEN, 1)] == 13


def test_offline_nothing_is_asked_and_a_missing_key_is_named(
    endpoint: FakeEndpoint, source_of: Open
) -> None:
    first = source_of(10, cache=True).fetch(WANTED)
    endpoint.forget()
    source = source_of(10, cache=True, offline=True)
    assert (source.block_hash, source.chain_id) == (block_hash(10), endpoint.chain_id)
    assert source.fetch(WANTED) == first
    with pytest.raises(ForkError, match=rf"slot 0x7b of account 0x{TOKEN.hex()} of block 10"):
        source.fetch(Wanted(slots={(TOKEN, 123)}))
    with pytest.raises(ForkError, match=rf"account 0x{'05' * 20} of block 10"):
        source.fetch(Wanted(accounts={b"\x05" * 20}))
    with pytest.raises(ForkError, match="the hash of block 2"):
        source.fetch(Wanted(block_hashes={2}))
    with pytest.raises(ForkError, match=r"offline: eth_getBlockByNumber\(0x1, True\)"):
        source.batch([("eth_getBlockByNumber", ("0x1", True))])
    assert not endpoint.bodies


def test_offline_the_newest_block_is_the_newest_that_is_kept(source_of: Open) -> None:
    for number in (10, 12, 11):
        source_of(number, cache=True)
    assert source_of("latest", cache=True, offline=True).block_number == 12
    assert source_of(11, cache=True, offline=True).block_number == 11
    with pytest.raises(ForkError, match="block 13 is not in the cache"):
        source_of(13, cache=True, offline=True)


def test_offline_another_address_needs_the_chain_id(
    endpoint: FakeEndpoint, source_of: Open
) -> None:
    source_of(10, cache=True).fetch(WANTED)
    elsewhere = {"urls": "http://elsewhere.invalid/key", "cache": True, "offline": True}
    assert source_of(10, chain_id=endpoint.chain_id, **elsewhere).fetch(WANTED).slots
    with pytest.raises(ForkError, match="of chain 5 is not in the cache"):
        source_of(10, chain_id=5, **elsewhere)


def test_the_cache_holds_no_part_of_an_address(
    endpoint: FakeEndpoint, source_of: Open, own_cache: Path
) -> None:
    url = endpoint.url.replace("//", "//me:pass-word@") + "/v2/SECRETKEY?token=OTHERKEY"
    source = source_of(10, urls=url, headers={"X-Key": "HEADERKEY"}, cache=True)
    source.fetch(WANTED)
    source.request("eth_getBlockByNumber", ("0x1", True))
    source.close()
    files = b"".join(file.read_bytes() for file in own_cache.rglob("*") if file.is_file())
    assert len(files) > 10_000
    for secret in (b"SECRETKEY", b"OTHERKEY", b"pass-word", b"HEADERKEY", b"127.0.0.1"):
        assert secret not in files


def test_values_that_came_before_an_error_are_kept(endpoint: FakeEndpoint, source_of: Open) -> None:
    endpoint.batch_limit = 5
    source = source_of(10, cache=True)
    slots = {(TOKEN, slot) for slot in range(60)}
    count = 0

    def failing(address: str, slot: str, at: object) -> str:
        nonlocal count
        count += 1
        if count > 30:
            raise RpcError(-32000, "missing trie node")
        return endpoint.slot(address, slot)

    endpoint.methods["eth_getStorageAt"] = failing
    with pytest.raises(ForkError):
        source.fetch(Wanted(slots=slots))
    assert source.session.cache is not None
    assert 0 < source.session.cache.stats()["slot"] < 60


def test_history_below_the_fork_is_asked_once(endpoint: FakeEndpoint, source_of: Open) -> None:
    calls = [
        ("eth_getBlockByNumber", ("0x5", True)),
        ("eth_getBlockByHash", ("0x" + block_hash(4).hex(), True)),
        ("eth_getLogs", ({"fromBlock": "0x1", "toBlock": "0xa"},)),
        ("eth_getTransactionReceipt", ("0x" + "ab" * 32,)),
    ]
    endpoint.methods["eth_getLogs"] = lambda _: [{"blockNumber": "0x2"}]
    endpoint.methods["eth_getTransactionReceipt"] = lambda _: {"blockNumber": "0x3"}
    source = source_of(10, cache=True)
    endpoint.forget()
    first = source.batch(calls)
    assert len(endpoint.bodies) == 1
    assert source.batch(calls) == first
    assert source_of(10, cache=True, offline=True).batch(calls) == first


@pytest.mark.parametrize(
    "call",
    [
        ("eth_getBlockByNumber", ("0xb", False)),
        ("eth_getBlockByNumber", ("latest", False)),
        ("eth_getLogs", ({"fromBlock": "0x1", "toBlock": "latest"},)),
        ("eth_getLogs", ({"fromBlock": "0x1"},)),
        ("eth_getTransactionReceipt", ("0x" + "ab" * 32,)),
        ("eth_gasPrice", ()),
    ],
)
def test_what_the_fork_does_not_determine_is_asked_again(
    endpoint: FakeEndpoint, source_of: Open, call: tuple[str, tuple[object, ...]]
) -> None:
    endpoint.methods["eth_getLogs"] = lambda _: []
    endpoint.methods["eth_gasPrice"] = lambda: "0x1"
    endpoint.methods["eth_getTransactionReceipt"] = lambda _: {"blockNumber": "0xb"}
    source = source_of(10, cache=True)
    source.batch([call])
    endpoint.forget()
    source.batch([call])
    assert len(endpoint.bodies) == 1


def test_history_of_another_branch_is_not_kept(endpoint: FakeEndpoint, source_of: Open) -> None:
    source = source_of(10, cache=True)
    endpoint.branch = 1
    call = ("eth_getBlockByNumber", ("0x5", True))
    source.batch([call])
    endpoint.forget()
    source.batch([call])
    assert len(endpoint.bodies) == 1


def test_receipts_come_together_or_one_by_one(endpoint: FakeEndpoint, source_of: Open) -> None:
    def receipt(digest: str) -> dict[str, str]:
        return {"transactionHash": digest, "blockHash": "0x" + block_hash(5).hex()}

    hashes = ["0x" + bytes([k]).hex() * 32 for k in range(3)]
    endpoint.methods["eth_getTransactionReceipt"] = receipt
    source = source_of(10)
    at = {**(source.block_with_transactions(5) or {}), "transactions": hashes}
    assert source.receipts(at) == [receipt(item) for item in hashes]
    endpoint.methods["eth_getBlockReceipts"] = lambda _: [receipt(item) for item in hashes]
    source = source_of(10)
    endpoint.forget()
    assert source.receipts(at) == [receipt(item) for item in hashes]
    assert len(endpoint.bodies) == 1
    with pytest.raises(ForkError, match="no receipts of block"):
        source.receipts({**at, "hash": "0x" + block_hash(6).hex()})
