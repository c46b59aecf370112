"""Tests endpoints that lag, reorganise or change chains: all values must be of the same block."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from fastevm.bench.remote import market, market_nodes
from fastevm.bench.remote.market_nodes import Upstream
from fastevm.bench.remote.proxy import Endpoint, Proxy
from fastevm.core.state.source import Wanted
from fastevm.errors import ForkError
from fastevm.fork.remote_source import RemoteSource
from fastevm.rpc_client.messages import Call
from tests.faults import faulty_endpoints as faulty
from tests.fork import truth
from tests.fork.test_endpoints import HURRIED, check_text

WAYS: dict[str, type[Endpoint]] = {"by hash": Endpoint, "by number": faulty.NumbersOnly}
TOKEN = market.TOKEN_ADDRESSES[1]
SLOT = market.token_slot_of(3)
COUNTER = "0x" + "c0" * 20
COUNTING = "0x5f54600101805f555f52600760205fa160205ff3"  # increments slot 0 and emits a log
# With so many attempts, 99 of 100 test runs would notice if the check of the block were missing.
ATTEMPTS = 12


@pytest.fixture
def proxy(own: Upstream) -> Iterator[Proxy]:
    with Proxy(own.url, key="k3y-of-a-customer") as found:
        yield found


def opened(proxy: Proxy, tmp_path: Path, block: Any = "latest", **options: Any) -> RemoteSource:
    return RemoteSource.open(proxy.url, block, **{"cache": tmp_path, **HURRIED, **options})


def set_slot(node: Upstream, value: int) -> None:
    place = ("0x" + TOKEN.hex(), f"0x{SLOT:064x}", f"0x{value:064x}")
    node.ask("anvil_setStorageAt", *place)


@pytest.mark.parametrize("way", WAYS)
def test_all_values_are_of_one_block(own: Upstream, proxy: Proxy, tmp_path: Path, way: str) -> None:
    proxy.endpoint = WAYS[way]()
    with opened(proxy, tmp_path) as source:
        number = source.block_number
        before = own.ask("eth_getStorageAt", "0x" + TOKEN.hex(), hex(SLOT), hex(number))
        own.ask("evm_mine")
        set_slot(own, 123)
        own.ask("evm_mine")
        found = source.fetch(Wanted(slots={(TOKEN, SLOT)}))
    assert found.slots[TOKEN, SLOT] == int(before, 16)


@pytest.mark.parametrize("way", WAYS)
def test_a_block_that_was_reorganised_away_is_an_error_or_still_itself(
    own: Upstream, proxy: Proxy, tmp_path: Path, way: str
) -> None:
    proxy.endpoint = WAYS[way]()
    snapshot = own.ask("evm_snapshot")
    set_slot(own, 1_001)
    own.ask("evm_mine")
    with opened(proxy, tmp_path) as source:
        source.fetch(Wanted({truth.NOBODY}))
        own.ask("evm_revert", snapshot)
        set_slot(own, 2_002)
        own.ask("evm_mine")
        try:
            found = source.fetch(Wanted(slots={(TOKEN, SLOT)}))
        except ForkError as error:
            check_text(error, proxy)
            assert "newe" in str(error) or "again" in str(error)
        else:
            assert found.slots[TOKEN, SLOT] == 1_001


@pytest.mark.parametrize("way", WAYS)
def test_another_chain_behind_the_same_address_is_an_error(
    own: Upstream, proxy: Proxy, tmp_path: Path, way: str
) -> None:
    proxy.endpoint = WAYS[way]()
    document = market.empty_genesis() | {"timestamp": hex(market.GENESIS_TIME - 1)}
    with market_nodes.start_own(document) as other, opened(proxy, tmp_path) as source:
        source.fetch(Wanted({truth.NOBODY}))
        other.ask("anvil_mine", hex(own.head + 1))
        proxy.target = other.url
        with pytest.raises(ForkError) as caught:
            source.fetch(Wanted(slots={(TOKEN, SLOT)}))
    check_text(caught.value, proxy)


def test_a_chain_id_that_is_not_expected_is_an_error(proxy: Proxy, tmp_path: Path) -> None:
    proxy.endpoint = faulty.OtherChain(999)
    with pytest.raises(ForkError, match=r"31337.*999") as caught:
        opened(proxy, tmp_path, chain_id=31_337)
    check_text(caught.value, proxy)


def test_caches_of_two_chains_do_not_mix(own: Upstream, proxy: Proxy, tmp_path: Path) -> None:
    """Both chains have the same chain id and the same block numbers."""
    document = market.empty_genesis() | {"timestamp": hex(market.GENESIS_TIME - 1)}
    wanted = Wanted({TOKEN}, {(TOKEN, SLOT)})
    with opened(proxy, tmp_path, own.head - 2) as source:
        assert source.fetch(wanted).accounts[TOKEN].code
    with market_nodes.start_own(document) as other:
        other.ask("anvil_mine", hex(own.head))
        proxy.target = other.url
        with opened(proxy, tmp_path, own.head - 2) as source:
            found = source.fetch(wanted)
    assert not found.accounts[TOKEN].code and found.slots[TOKEN, SLOT] == 0


@pytest.mark.parametrize("every", [2, 3])
def test_one_of_several_nodes_lags(own: Upstream, proxy: Proxy, tmp_path: Path, every: int) -> None:
    own.ask("anvil_mine", "0x3")
    head = own.ask("eth_getBlockByNumber", "latest", False)
    old = own.ask("eth_getBlockByNumber", hex(own.head - 2), False)
    newer = [own.ask("eth_getBlockByNumber", hex(own.head - back), False) for back in (0, 1)]
    names = [each[name] for each in newer for name in ("hash", "number")]
    wanted = truth.wide(tokens=10)
    with opened(proxy, tmp_path, head["hash"], retries=6) as source:
        proxy.endpoint = faulty.OldHead(own.head - 2, old["hash"], names, every=every)
        found = source.fetch(wanted)
    assert not truth.differences(own, found, int(head["number"], 16))


def test_a_lie_in_a_trace_alone_is_not_believed(
    own: Upstream, proxy: Proxy, tmp_path: Path
) -> None:
    """A value from a trace is compared with a read of the value before it is used."""

    class LyingTraces(faulty.Lies):
        def _changed(self, method: str, params: list[Any], result: Any) -> Any:
            return super()._changed(method, params, result) if "trace" in method else result

    lie = proxy.endpoint = LyingTraces(TOKEN, SLOT, 77)
    wanted = Wanted({TOKEN}, {(TOKEN, SLOT)}, calls=[market.balance_call(1, 3)])
    with opened(proxy, tmp_path) as source:
        found = source.fetch(wanted)
        found = source.fetch(wanted)
    assert not truth.differences(own, found, own.head)
    assert lie.reported > 0


class Miner(threading.Thread):
    """Makes anvil mine continuously, with a new value in every slot in each block."""

    def __init__(self, node: Upstream) -> None:
        super().__init__()
        self.node, self.stopped = node, threading.Event()
        sender = "0x" + market.holders()[0].address.hex()
        node.ask("anvil_impersonateAccount", sender)
        node.ask("anvil_setCode", COUNTER, COUNTING)
        self.calls: list[Call] = [
            ("eth_sendTransaction", [{"from": sender, "to": COUNTER, "gas": "0x186a0"}])
        ] * 20

    def run(self) -> None:
        with self.node.node.client() as client:
            while not self.stopped.wait(0.02):
                client.batch(self.calls)
                client.call("evm_mine")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stopped.set()
        self.join()


def test_the_newest_state_of_a_node_that_mines_is_that_of_one_block(anvil: Upstream) -> None:
    """While anvil mines, about a third of these reads return values of the next block."""
    wanted, differences = Wanted(slots={(bytes.fromhex(COUNTER[2:]), 0)}), []
    with Proxy(anvil.url) as proxy, Miner(anvil):
        for _ in range(ATTEMPTS):
            with RemoteSource.open(proxy.url, cache=False, progress=False) as source:
                found = source.fetch(wanted)
                while anvil.head <= source.block_number:
                    time.sleep(0.01)
                differences += truth.differences(anvil, found, source.block_number)
    assert not differences
