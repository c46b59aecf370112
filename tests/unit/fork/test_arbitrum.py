"""Tests forks of Arbitrum: rules by the version in the header, L1 numbers, precompiles."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fastevm import EVM
from fastevm.core.execution.arbitrum.header import HeaderInfo
from fastevm.core.native.arbitrum.storage import STATE_ADDRESS, slot
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.state.source import RemoteAccount
from fastevm.errors import ForkError, InvalidTransaction
from fastevm.fork import RemoteBlock, RemoteSource, replay, rules_of
from fastevm.fork.arbitrum import FEATURES_SLOT
from fastevm.rpc_types.blocks import header_from_json
from fastevm.simulate import simulate

from .arbitrum_endpoint import (
    ARBITRUM_ONE,
    BASE_FEE,
    FIRST,
    L1_FIRST,
    L1_PRICE,
    RECORDED,
    ArbitrumEndpoint,
    arbitrum_block,
)
from .fake_endpoint import HEAD, FakeEndpoint, block_hash

Open = Callable[..., RemoteSource]
NUMBER, L1_NUMBER = FIRST + HEAD, L1_FIRST + HEAD
SYS, GAS_INFO = (0x64).to_bytes(20, "big"), (0x6C).to_bytes(20, "big")
BOB = b"\xb0" * 20


@pytest.fixture
def endpoint() -> Iterator[ArbitrumEndpoint]:
    fake = ArbitrumEndpoint()
    yield fake
    fake.close()


def selector(signature: str) -> bytes:
    return keccak256(signature.encode())[:4]


def number_of(evm: EVM, to: bytes, signature: str) -> int:
    result = evm.call(to, selector(signature)).check()
    return int.from_bytes(result.output[:32], "big")


def fork(endpoint: FakeEndpoint, **options: Any) -> EVM:
    return EVM.fork(endpoint.url, cache=False, **options)


# --- headers --------------------------------------------------------------------------------------


def test_the_header_of_a_block() -> None:
    info = HeaderInfo.of(RECORDED)
    assert info == (166_639, 26_125_271, 61, True)
    assert info.mix_hash() == RECORDED


# --- rules ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [6, 11, 20, 31, 40, 51, 61])
def test_the_rules_are_those_of_the_version_in_the_header(
    endpoint: ArbitrumEndpoint, source_of: Open, version: int
) -> None:
    endpoint.version = version
    schedule = rules_of(source_of()).activations.at(NUMBER, 1_790_000_000)
    assert schedule.name == f"ArbOS{version}"
    assert schedule.parameters["arbos_version"] == version


def test_an_old_block_has_old_rules(endpoint: ArbitrumEndpoint, source_of: Open) -> None:
    endpoint.methods["eth_getBlockByNumber"] = lambda tag, full: arbitrum_block(
        HEAD if tag == "latest" else 3, 61 if tag == "latest" else 20
    )
    assert rules_of(source_of()).activations.at(0, 0).name == "ArbOS61"
    assert rules_of(source_of(FIRST + 3)).activations.at(0, 0).name == "ArbOS20"


def test_orbit_chains_are_recognised_by_their_blocks(
    endpoint: ArbitrumEndpoint, source_of: Open
) -> None:
    endpoint.chain_id = 660_279
    assert rules_of(source_of()).activations.at(0, 0).name == "ArbOS61"


def test_a_header_without_a_version_leaves_it_to_the_state(
    endpoint: ArbitrumEndpoint, source_of: Open
) -> None:
    endpoint.version = 0
    endpoint.put((), 0, 32)
    assert rules_of(source_of()).activations.at(0, 0).name == "ArbOS32"
    endpoint.put((), 0, 0)
    with pytest.raises(ForkError, match="no version of ArbOS"):
        rules_of(source_of())


def test_a_later_version_has_the_newest_rules_and_a_warning(
    endpoint: ArbitrumEndpoint, source_of: Open, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint.version = 99
    with caplog.at_level(logging.WARNING):
        assert rules_of(source_of()).activations.at(0, 0).name == "ArbOS61"
    assert "unknown version 99 of ArbOS" in caplog.text


def test_the_owners_decide_about_the_calldata_floor(
    endpoint: ArbitrumEndpoint, source_of: Open
) -> None:
    assert not rules_of(source_of()).activations.at(0, 0).parameters["tx_floor_token_cost"]
    endpoint.slots[STATE_ADDRESS, FEATURES_SLOT] = 1
    assert rules_of(source_of()).activations.at(0, 0).parameters["tx_floor_token_cost"] == 10


def test_blocks_of_classic_are_refused(endpoint: ArbitrumEndpoint, source_of: Open) -> None:
    old = arbitrum_block(0) | {"number": hex(22_207_817)}
    endpoint.methods["eth_getBlockByNumber"] = lambda *_: old
    with pytest.raises(ForkError, match=r"Arbitrum Classic.*22207818"):
        rules_of(source_of())


def test_a_named_fork_has_precedence(endpoint: ArbitrumEndpoint, source_of: Open) -> None:
    assert rules_of(source_of(), "arbos40").activations.at(0, 0).name == "ArbOS40"


# --- machines -------------------------------------------------------------------------------------


def test_a_machine_sees_both_numbers(endpoint: ArbitrumEndpoint) -> None:
    evm = fork(endpoint)
    assert (evm.chain_id, evm.block.number, evm.block.l1_number) == (
        ARBITRUM_ONE, NUMBER, L1_NUMBER,
    )  # fmt: skip
    assert evm.block.prev_randao == 1
    assert number_of(evm, SYS, "arbBlockNumber()") == NUMBER
    assert number_of(evm, SYS, "arbOSVersion()") == 116
    evm.set_code(BOB, bytes.fromhex("435f524460205260405ff3"))  # NUMBER, PREVRANDAO
    output = evm.call(BOB).output
    assert (int.from_bytes(output[:32], "big"), output[32:]) == (L1_NUMBER, bytes(31) + b"\1")


def test_hashes_come_from_the_ring_of_l1_and_from_blocks_of_arbitrum(
    endpoint: ArbitrumEndpoint,
) -> None:
    evm = fork(endpoint)
    evm.set_code(BOB, bytes.fromhex("5f35405f5260205ff3"))
    asked = L1_NUMBER - 3
    output = evm.call(BOB, asked.to_bytes(32, "big")).output
    assert int.from_bytes(output, "big") == 7_000 + asked % 256
    asked = NUMBER - 3
    output = evm.call(SYS, selector("arbBlockHash(uint256)") + asked.to_bytes(32, "big")).output
    assert output == block_hash(HEAD - 3)


def test_prices_take_no_further_round_trip(endpoint: ArbitrumEndpoint) -> None:
    evm = fork(endpoint)
    opened = len(endpoint.bodies)
    assert opened <= 3
    evm.set_account(BOB, balance=10**18)
    endpoint.forget()
    assert number_of(evm, GAS_INFO, "getL1BaseFeeEstimate()") == L1_PRICE
    assert number_of(evm, GAS_INFO, "getMinimumGasPrice()") == BASE_FEE
    assert endpoint.asked("eth_getStorageAt") == []


def test_changed_storage_changes_the_views(endpoint: ArbitrumEndpoint) -> None:
    evm = fork(endpoint)
    evm.set_storage(STATE_ADDRESS, slot((b"\x00",), 7), 99)
    assert number_of(evm, GAS_INFO, "getL1BaseFeeEstimate()") == 99


def test_what_a_block_cannot_do_is_refused_by_name(endpoint: ArbitrumEndpoint) -> None:
    endpoint.accounts[BOB] = RemoteAccount(0, 1, bytes.fromhex("eff0000012345678"))
    evm = fork(endpoint)
    with pytest.raises(InvalidTransaction, match="Stylus"):
        evm.call(BOB)
    assert number_of(evm, SYS, "arbBlockNumber()") == NUMBER


def test_blocks_are_not_executed_again(endpoint: ArbitrumEndpoint) -> None:
    message = "cannot be executed again"
    with pytest.raises(ForkError, match=message):
        fork(endpoint, tx_index=0)
    with (
        RemoteSource.open(endpoint.url, cache=False) as source,
        pytest.raises(ForkError, match=message),
    ):
        RemoteBlock(source, rules_of(source), NUMBER)
    mined = {"blockHash": arbitrum_block(HEAD)["hash"], "transactionIndex": "0x0"}
    endpoint.methods["eth_getTransactionReceipt"] = lambda digest: mined
    with pytest.raises(ForkError, match=message):
        replay(endpoint.url, "0x" + "11" * 32, cache=False)


def test_simulations_continue_with_the_next_block_of_l1(endpoint: ArbitrumEndpoint) -> None:
    evm = fork(endpoint)
    evm.set_code(BOB, bytes.fromhex("435f5260205ff3"))
    calls = [{"to": BOB}, {"to": SYS, "data": selector("arbBlockNumber()")}]
    results = simulate(evm, {"blockStateCalls": [{"calls": calls}] * 3})
    seen = [[int.from_bytes(call.output, "big") for call in result.calls] for result in results]
    assert seen == [
        [L1_NUMBER, NUMBER], [L1_NUMBER + 1, NUMBER + 1], [L1_NUMBER + 2, NUMBER + 2]
    ]  # fmt: skip


def test_the_reader_of_slots_pays_nothing_for_l1(endpoint: ArbitrumEndpoint) -> None:
    """Its calls set skipL1Charging, because a call with a gas limit also pays for its L1 data."""
    seen: list[Any] = []

    def simulated(payload: Any, at: Any) -> Any:
        [found] = payload["blockStateCalls"]
        seen.extend(found["calls"])
        words = "0x" + "00" * 32
        return [{"calls": [{"returnData": words * 1} for _ in found["calls"]]}]

    endpoint.methods["eth_simulateV1"] = simulated
    evm = fork(endpoint)
    evm.set_code(BOB, b"")
    for key in range(40):
        evm.storage(b"\x77" * 20, key)
    evm.storage(STATE_ADDRESS, slot((b"\x0a",), 0))
    readers = {call["to"] for call in seen}
    assert "0x" + STATE_ADDRESS.hex() not in readers
    assert all(call["skipL1Charging"] for call in seen)


def test_headers_survive_json() -> None:
    header = header_from_json(arbitrum_block(HEAD))
    assert (header.difficulty, header.mix_hash) == (1, RECORDED)
