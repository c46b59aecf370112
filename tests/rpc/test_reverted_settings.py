"""Tests that evm_revert restores every setting of the next blocks.

``hardhat`` and ``anvil`` state whether these nodes restore the setting, too. Hardhat 3: by the
snapshots of its provider. anvil 1.7.1, measured: it drops pinned values and offsets, and keeps the
newest value of other settings.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from fastevm.bench.node.launch import ServerThread
from fastevm.node import Mining, dev_node
from fastevm.rpc_client.blocking import JsonRpcClient
from tests.anvil import anvil_process
from tests.max_wait import MAX_WAIT

from .block_names import ask, result

FAR = 4_000_000_000  # a timestamp in 2096


class Setting(NamedTuple):
    """A method, its parameter before and after the snapshot, and a block member that shows it."""

    method: str
    early: Any
    late: Any
    member: str
    early_shown: int
    hardhat: bool
    anvil: bool | None  # None if anvil does not have the method


SETTINGS = {
    "coinbase": Setting(
        "anvil_setCoinbase", "0x" + "c1" * 20, "0x" + "c2" * 20, "miner",
        int("c1" * 20, 16), hardhat=True, anvil=False,
    ),
    "gas limit": Setting(
        "evm_setBlockGasLimit", hex(20_000_000), hex(10_000_000), "gasLimit",
        20_000_000, hardhat=True, anvil=False,
    ),
    "base fee": Setting(
        "anvil_setNextBlockBaseFeePerGas", hex(7 * 10**9), hex(9 * 10**9), "baseFeePerGas",
        7 * 10**9, hardhat=True, anvil=False,
    ),
    "prevRandao": Setting(
        "anvil_setNextBlockPrevRandao", "0x" + "01" * 32, "0x" + "02" * 32, "mixHash",
        int("01" * 32, 16), hardhat=True, anvil=None,
    ),
    "next timestamp": Setting(
        "evm_setNextBlockTimestamp", FAR, FAR + 500_000, "timestamp",
        FAR, hardhat=True, anvil=False,
    ),
}  # fmt: skip


@pytest.fixture
def client() -> Iterator[JsonRpcClient]:
    node = dev_node(mining=Mining.INSTANT, shares_seconds=True)
    with ServerThread(node, development=True) as server, server.client("geth") as client:
        yield client


def next_block(client: JsonRpcClient, member: str) -> int:
    result(client, "evm_mine")
    return int(result(client, "eth_getBlockByNumber", "latest", False)[member], 16)


@pytest.mark.parametrize("mined", [False, True])
@pytest.mark.parametrize("name", SETTINGS)
def test_what_was_set_before_is_set_again(client: JsonRpcClient, name: str, mined: bool) -> None:
    setting = SETTINGS[name]
    result(client, setting.method, setting.early)
    number = result(client, "evm_snapshot")
    result(client, setting.method, setting.late)
    if mined:
        result(client, "anvil_mine", 2)
    assert result(client, "evm_revert", number) is True
    assert next_block(client, setting.member) == setting.early_shown


@pytest.mark.parametrize("mined", [False, True])
@pytest.mark.parametrize("name", SETTINGS)
def test_what_was_set_after_is_gone(client: JsonRpcClient, name: str, mined: bool) -> None:
    setting = SETTINGS[name]
    outer = result(client, "evm_snapshot")
    usual = next_block(client, setting.member)
    assert result(client, "evm_revert", outer) is True
    number = result(client, "evm_snapshot")
    result(client, setting.method, setting.late)
    if mined:
        result(client, "anvil_mine", 2)
    assert result(client, "evm_revert", number) is True
    found = next_block(client, setting.member)
    if setting.member == "timestamp":
        assert found - usual in range(100)
    else:
        assert found == usual


@pytest.mark.parametrize("mined", [False, True])
def test_time_goes_on_from_the_snapshot(client: JsonRpcClient, mined: bool) -> None:
    first = next_block(client, "timestamp")
    result(client, "evm_increaseTime", 100_000)
    number = result(client, "evm_snapshot")
    result(client, "evm_increaseTime", 500_000)
    if mined:
        result(client, "evm_mine")
    assert result(client, "evm_revert", number) is True
    assert next_block(client, "timestamp") - first - 100_000 in range(100)


def test_the_interval_of_timestamps_is_restored(client: JsonRpcClient) -> None:
    result(client, "anvil_setBlockTimestampInterval", 77)
    number = result(client, "evm_snapshot")
    result(client, "anvil_setBlockTimestampInterval", 99)
    result(client, "anvil_mine", 3)
    assert result(client, "evm_revert", number) is True
    first = next_block(client, "timestamp")
    assert next_block(client, "timestamp") - first == 77


@pytest.fixture(scope="module")
def anvil() -> Iterator[JsonRpcClient]:
    with (
        anvil_process() as process,
        JsonRpcClient(process.url, timeout=MAX_WAIT) as client,
    ):
        yield client


@pytest.mark.parametrize("name", SETTINGS)
def test_the_column_of_anvil(anvil: JsonRpcClient, name: str) -> None:
    setting = SETTINGS[name]
    outer = result(anvil, "evm_snapshot")
    if setting.anvil is None:
        assert "error" in ask(anvil, setting.method, setting.early)
        return
    result(anvil, setting.method, setting.early)
    number = result(anvil, "evm_snapshot")
    result(anvil, setting.method, setting.late)
    result(anvil, "evm_mine")
    assert result(anvil, "evm_revert", number) is True
    assert (next_block(anvil, setting.member) == setting.early_shown) is setting.anvil
    result(anvil, "evm_revert", outer)
