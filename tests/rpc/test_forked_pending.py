"""Tests `EVM.fork` at the pending block: its transactions run on the newest state."""

from collections.abc import Iterator

import pytest

from fastevm import EVM
from fastevm.bench.node.launch import ServerThread, wait_for
from fastevm.core.primitives.hex import hex_bytes
from fastevm.node import Mining, dev_node
from tests.block_times import UNHURRIED_MS
from tests.max_wait import MAX_WAIT

from .block_names import CALL, DEPLOYED, play, result
from .test_forked_node import accounts, counting

TARGET = bytes.fromhex(DEPLOYED[2:])
SLOT = 7
PRICES = {"gas": 100_000, "gas_price": 10**10}


@pytest.fixture(params=["slices", "on demand"])
def upstream(request: pytest.FixtureRequest) -> Iterator[ServerThread]:
    """Provides an upstream whose counter is 2 in the newest and 4 in the pending block."""
    if request.param == "slices":
        node = dev_node(block_time_ms=UNHURRIED_MS, slice_interval_ms=50)
    else:
        node = dev_node(mining=Mining.MANUAL)
    with ServerThread(node) as server, server.client() as client:
        play(client)
        for nonce in range(2):
            raw = counting(accounts()[1], nonce, to=TARGET)
            result(client, "eth_sendRawTransaction", hex_bytes(raw))

        def waits() -> bool:
            slot = result(client, "eth_getStorageAt", DEPLOYED, "0x7", "pending")
            return int(slot, 16) == 4

        wait_for(waits, MAX_WAIT, "not pending")
        yield server


@pytest.mark.parametrize("dialect", ["preconf", "geth"])
def test_the_pending_state(upstream: ServerThread, dialect: str) -> None:
    url = upstream.url(dialect)
    newest = EVM.fork(url, cache=False)
    pending = EVM.fork(url, "pending", cache=False)
    assert (newest.storage(TARGET, SLOT), pending.storage(TARGET, SLOT)) == (2, 4)
    assert pending.block.number == newest.block.number + 1
    assert pending.nonce(accounts()[1].address) == 2
    between = EVM.fork(url, "pending", tx_index=1, cache=False)
    assert between.storage(TARGET, SLOT) == 3
    assert pending.transact(TARGET, sender=accounts()[2].address, **PRICES).success
    assert pending.storage(TARGET, SLOT) == 5
    with upstream.client() as client:  # The fork keeps its state while the endpoint's chain grows.
        result(client, "eth_sendTransaction", CALL)
        result(client, "evm_mine")
    assert pending.storage(TARGET, SLOT) == 5


def test_without_a_pending_block_it_is_the_newest(upstream: ServerThread) -> None:
    node = dev_node(mining=Mining.NEVER)
    with ServerThread(node) as server:
        evm = EVM.fork(server.url(), "pending", cache=False)
    assert evm.block.number == node.chain.head.number
