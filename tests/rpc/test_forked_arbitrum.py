"""Tests a node on an Arbitrum fork: local blocks, L1 and L2 block numbers, estimates, traces."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from eth_abi import encode as encode_abi

from fastevm.bench.node.launch import ServerThread
from fastevm.chain.storage import DataDirectory
from fastevm.core.execution.arbitrum.header import HeaderInfo
from fastevm.core.execution.arbitrum.l1_fee import estimated_units, units_of, unsigned_like
from fastevm.core.execution.arbitrum.transaction_types import INTERNAL, encode
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.native.arbitrum.storage import STATE_ADDRESS, slot
from fastevm.core.primitives.hex import hex_bytes
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.state.source import RemoteAccount
from fastevm.errors import ForkError
from fastevm.node import Mining, forked_node
from fastevm.node.dev_accounts import dev_accounts
from fastevm.node.remote.options import ForkOptions
from fastevm.rpc_client.blocking import JsonRpcClient
from fastevm.rpc_client.messages import RpcRefusal
from fastevm.rpc_types.transactions import transaction_json
from tests.unit.fork.arbitrum_endpoint import (
    ARBITRUM_ONE,
    BASE_FEE,
    FIRST,
    L1_FIRST,
    L1_PRICE,
    RECORDED,
    ArbitrumEndpoint,
    arbitrum_block,
)
from tests.unit.fork.fake_endpoint import HEAD

NUMBER, L1_NUMBER = FIRST + HEAD, L1_FIRST + HEAD
SYS, OWNER_PUBLIC = "0x" + "64".rjust(40, "0"), "0x" + "6b".rjust(40, "0")
GAS_INFO, WASM = "0x" + "6c".rjust(40, "0"), "0x" + "71".rjust(40, "0")
NUMBERS = bytes.fromhex("cc" * 20)  # returns NUMBER, and BLOCKHASH of NUMBER - 1
STYLUS = bytes.fromhex("57" * 20)
GAS_LEFT = bytes.fromhex("6a" * 20)  # returns the gas left when its code begins
HISTORY = bytes.fromhex("0000f90827f1c53a10cb7a02335b175320002935")
ACCOUNTS = dev_accounts(2)
BOB = hex_bytes(ACCOUNTS[1].address)


def selector(signature: str) -> str:
    return hex_bytes(keccak256(signature.encode())[:4])


@pytest.fixture(scope="module")
def upstream() -> Iterator[ArbitrumEndpoint]:
    fake = ArbitrumEndpoint()
    fake.accounts[NUMBERS] = RemoteAccount(0, 1, bytes.fromhex("435f52600143034060205260405ff3"))
    fake.accounts[STYLUS] = RemoteAccount(0, 1, bytes.fromhex("eff000001234"))
    fake.accounts[GAS_LEFT] = RemoteAccount(0, 1, bytes.fromhex("5a5f5260205ff3"))
    fake.accounts[HISTORY] = RemoteAccount(0, 1, bytes.fromhex("00"))
    yield fake
    fake.close()


@pytest.fixture
def node(upstream: ArbitrumEndpoint) -> Iterator[JsonRpcClient]:
    options = ForkOptions(urls=(upstream.url,), cache=False)
    made = forked_node(options, accounts=2, mining=Mining.INSTANT)
    with ServerThread(made) as server, server.client("geth") as client:
        yield client


def call(node: JsonRpcClient, to: str, signature: str, at: str = "latest") -> int:
    found = node.call("eth_call", {"to": to, "data": selector(signature)}, at)
    return int(found[:66], 16)


def sent(node: JsonRpcClient, **fields: Any) -> str:
    nonce = int(node.call("eth_getTransactionCount", hex_bytes(ACCOUNTS[0].address), "latest"), 16)
    prices = {"max_fee_per_gas": 10**9, "max_priority_fee_per_gas": 0}
    made = Transaction.build(
        chain_id=ARBITRUM_ONE, nonce=nonce, **{"gas_limit": 100_000, **prices, **fields}
    )
    raw = hex_bytes(made.sign(ACCOUNTS[0].private_key).raw)
    return str(node.call("eth_sendRawTransaction", raw))


def test_a_call_sees_both_numbers(node: JsonRpcClient) -> None:
    assert call(node, SYS, "arbBlockNumber()") == NUMBER
    found = node.call("eth_call", {"to": hex_bytes(NUMBERS)}, "latest")
    assert int(found[2:66], 16) == L1_NUMBER
    assert int(found[66:], 16) == 7_000 + (L1_NUMBER - 1) % 256
    assert call(node, GAS_INFO, "getMinimumGasPrice()") == BASE_FEE
    # Without a gas price, BASEFEE is 0 in this dialect, but getPricesInWei returns the block's
    # prices.
    prices = node.call("eth_call", {"to": GAS_INFO, "data": selector("getPricesInWei()")}, "latest")
    assert int(prices[-64:], 16) == BASE_FEE


def test_a_local_block_has_the_form_of_arbitrums(node: JsonRpcClient) -> None:
    first = node.call("eth_getBlockByNumber", "latest", False)
    assert first["l1BlockNumber"] == hex(L1_NUMBER)
    sent(node, to=ACCOUNTS[1].address, value=1, gas_limit=21_000)
    block = node.call("eth_getBlockByNumber", "latest", False)
    assert block["number"] == hex(NUMBER + 1)
    assert block["parentHash"] == first["hash"]
    assert block["l1BlockNumber"] == hex(L1_NUMBER + 1)
    assert (block["difficulty"], block["gasLimit"]) == ("0x1", hex(1 << 50))
    assert block["baseFeePerGas"] == hex(BASE_FEE)
    for member in ("extraData", "sendRoot", "sendCount", "nonce", "miner"):
        assert block[member] == first[member], member
    info = HeaderInfo.of(bytes.fromhex(block["mixHash"][2:]))
    assert info == HeaderInfo.of(RECORDED)._replace(l1_number=L1_NUMBER + 1)
    assert "withdrawalsRoot" not in block
    assert "excessBlobGas" not in block
    assert call(node, SYS, "arbBlockNumber()") == NUMBER + 1
    assert call(node, hex_bytes(NUMBERS), "x()") == L1_NUMBER + 1


def test_a_local_block_records_the_block_of_l1(node: JsonRpcClient) -> None:
    first = node.call("eth_getBlockByNumber", "latest", False)
    node.call("evm_mine")
    at = hex(slot((b"\x06",), 0))
    state = hex_bytes(STATE_ADDRESS)
    assert int(node.call("eth_getStorageAt", state, at, "latest"), 16) == L1_NUMBER + 1
    found = node.call("eth_call", {"to": hex_bytes(NUMBERS)}, "latest")
    assert "0x" + found[66:] == first["hash"]


def test_receipts_have_the_members_of_arbitrum(node: JsonRpcClient) -> None:
    tx_hash = sent(node, to=ACCOUNTS[1].address, value=1, gas_limit=21_000)
    receipt = node.call("eth_getTransactionReceipt", tx_hash)
    assert (receipt["gasUsed"], receipt["gasUsedForL1"]) == ("0x5208", "0x0")
    assert receipt["l1BlockNumber"] == hex(L1_NUMBER + 1)
    assert receipt["blockNumber"] == hex(NUMBER + 1)
    assert node.call("eth_getBlockReceipts", "latest") == [receipt]


def test_a_message_to_l1_is_a_transaction(node: JsonRpcClient) -> None:
    data = keccak256(b"withdrawEth(address)")[:4] + ACCOUNTS[1].address.rjust(32, b"\0")
    tx_hash = sent(node, to=bytes.fromhex(SYS[2:]), data=data, value=5, gas_limit=200_000)
    receipt = node.call("eth_getTransactionReceipt", tx_hash)
    assert receipt["status"] == "0x1"
    assert [log["address"] for log in receipt["logs"]] == [SYS]
    trace = node.call("debug_traceTransaction", tx_hash, {"tracer": "callTracer"})
    assert (trace["to"], trace["value"]) == (SYS, "0x5")
    assert int(trace["output"], 16) == 0
    state = hex_bytes(STATE_ADDRESS)
    prestate = node.call("debug_traceTransaction", tx_hash, {"tracer": "prestateTracer"})
    assert len(prestate[state]["storage"]) >= 2


def test_precompiles_are_no_entries_of_access_lists(node: JsonRpcClient) -> None:
    request = {"from": BOB, "to": GAS_INFO, "data": selector("getMinimumGasPrice()")}
    found = node.call("eth_createAccessList", request, "latest")
    assert found["accessList"] == []
    assert int(found["gasUsed"], 16) == 21_000 + 64 + 1603


def estimate(node: JsonRpcClient, **members: Any) -> int:
    request = {"from": BOB, "to": BOB, "value": "0x1", **members}
    return int(node.call("eth_estimateGas", request), 16)


def test_estimates_pay_for_data_on_l1(node: JsonRpcClient) -> None:
    raw = unsigned_like(to=ACCOUNTS[1].address, value=1, data=b"")
    gas = estimated_units(raw, 1) * L1_PRICE * 110 // 100 // BASE_FEE
    assert estimate(node) == 21_000 + gas
    assert gas > 0
    assert estimate(node, skipL1Charging=True) == 21_000
    assert estimate(node, data="0x" + "a7" * 500) > estimate(node, data="0x" + "a7" * 100)


def test_calls_pay_for_data_on_l1(node: JsonRpcClient) -> None:
    raw = unsigned_like(to=GAS_LEFT, value=0, data=b"")
    for_l1 = estimated_units(raw, 1) * L1_PRICE // BASE_FEE
    assert for_l1 > 0

    def left(**members: Any) -> int:
        request = {"from": BOB, "to": hex_bytes(GAS_LEFT), **members}
        return int(node.call("eth_call", request, "latest"), 16)

    before_code = 21_000 + 2
    given = 10_000_000
    assert left(gas=hex(given)) == given - for_l1 - before_code
    assert left(gas=hex(given), skipL1Charging=True) == given - before_code
    # The gas for L1 is not taken from the 50,000,000 gas of the cap.
    assert left() == 50_000_000 - before_code
    assert left(gas=hex(10**8)) == 50_000_000 - before_code
    for too_little in (for_l1 - 1, for_l1 + 20_999):
        with pytest.raises(RpcRefusal, match="intrinsic gas too low"):
            left(gas=hex(too_little))


def test_units_of_a_fake_transaction() -> None:
    pytest.importorskip("brotli")
    raw = unsigned_like(to=bytes.fromhex("12345678".rjust(40, "0")), value=0, data=b"")
    assert len(raw) == 122
    assert (units_of(raw, 1), estimated_units(raw, 1)) == (2016, 2294)
    transfer = keccak256(b"transfer(address,uint256)")[:4]
    transfer += bytes.fromhex("f39Fd6e51aad88F6F4ce6aB8827279cffFb92266").rjust(32, b"\0")
    transfer += (10**18).to_bytes(32, "big")
    raw = unsigned_like(to=bytes.fromhex("12345678".rjust(40, "0")), value=0, data=transfer)
    assert len(raw) == 191
    assert (units_of(raw, 1), estimated_units(raw, 1)) == (3120, 3409)


def test_without_brotli_units_are_those_of_all_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "brotli", None)
    assert units_of(b"\x02" * 100, 1) == 1600


def test_tips_are_zero(node: JsonRpcClient) -> None:
    assert node.call("eth_maxPriorityFeePerGas") == "0x0"
    assert node.call("eth_gasPrice") == hex(BASE_FEE)


def refusal(node: JsonRpcClient, method: str, *params: Any) -> str:
    with pytest.raises(RpcRefusal) as caught:
        node.call(method, *params)
    return caught.value.message


def test_what_is_not_supported_is_refused_by_name(node: JsonRpcClient) -> None:
    data = keccak256(b"activateProgram(address)")[:4] + bytes(32)
    for method in ("eth_call", "eth_estimateGas"):
        message = refusal(node, method, {"to": WASM, "data": hex_bytes(data)}, "latest")
        assert "ArbWasm.activateProgram(address) is not supported" in message
        message = refusal(node, method, {"to": hex_bytes(STYLUS)}, "latest")
        assert "Stylus" in message
        assert "0x5757" in message
    assert call(node, SYS, "arbBlockNumber()") == NUMBER


def test_a_transaction_that_is_not_supported_changes_nothing(node: JsonRpcClient) -> None:
    tx_hash = sent(node, to=STYLUS)
    status = node.call("base_transactionStatus", tx_hash)
    assert "Stylus" in str(status), status
    assert node.call("eth_getTransactionByHash", tx_hash) is None
    assert node.call("eth_blockNumber") == hex(NUMBER)
    sent(node, to=ACCOUNTS[1].address, value=1, gas_limit=21_000)
    assert node.call("eth_blockNumber") == hex(NUMBER + 1)


def test_nobody_sends_the_messages_of_arbos(node: JsonRpcClient) -> None:
    raw = encode(INTERNAL, {"chain_id": ARBITRUM_ONE, "data": b"\x6b\xf6\xa4\x2d"})
    message = refusal(node, "eth_sendRawTransaction", hex_bytes(raw))
    assert "not supported" in message


def test_blocks_below_the_fork_are_those_of_the_upstream(
    node: JsonRpcClient, upstream: ArbitrumEndpoint
) -> None:
    found = node.call("eth_getBlockByNumber", hex(NUMBER - 1), False)
    assert found == arbitrum_block(HEAD - 1)
    raw = encode(INTERNAL, {"chain_id": ARBITRUM_ONE, "data": b"\x6b\xf6\xa4\x2d"})
    shown = transaction_json(Transaction.decode(raw)) | {
        "blockNumber": hex(NUMBER - 1),
        "blockHash": arbitrum_block(HEAD - 1)["hash"],
    }
    upstream.methods["eth_getTransactionByHash"] = lambda digest: shown
    assert node.call("eth_getTransactionByHash", shown["hash"]) == shown


def test_a_state_may_be_changed(node: JsonRpcClient) -> None:
    state = hex_bytes(STATE_ADDRESS)
    word = "0x" + (77).to_bytes(32, "big").hex()
    node.call("anvil_setStorageAt", state, hex(slot((b"\x00",), 7)), word)
    assert call(node, GAS_INFO, "getL1BaseFeeEstimate()") == 77


def test_simulated_blocks_have_numbers_of_both_chains(node: JsonRpcClient) -> None:
    calls = [{"to": hex_bytes(NUMBERS)}, {"to": SYS, "input": selector("arbBlockNumber()")}]
    found = node.call(
        "eth_simulateV1", {"blockStateCalls": [{"calls": calls}, {"calls": calls}]}, "latest"
    )
    for step, block in enumerate(found, 1):
        seen = [int(item["returnData"][:66], 16) for item in block["calls"]]
        assert seen == [L1_NUMBER + step, NUMBER + step]


def test_a_fork_is_kept_with_its_rules(upstream: ArbitrumEndpoint, tmp_path: Path) -> None:
    options = ForkOptions(urls=(upstream.url,))
    for restarts in range(2):
        directory = DataDirectory(tmp_path)
        made = forked_node(options, accounts=2, mining=Mining.MANUAL, directory=directory)
        with ServerThread(made) as server, server.client("geth") as client:
            assert call(client, SYS, "arbOSVersion()") == 116
            client.call("evm_mine")
            block = client.call("eth_getBlockByNumber", "latest", False)
            assert block["l1BlockNumber"] == hex(L1_NUMBER + 1 + restarts)


def test_following_is_refused(upstream: ArbitrumEndpoint) -> None:
    with pytest.raises(ValueError, match="--follow: the blocks of Arbitrum's chains"):
        forked_node(ForkOptions(urls=(upstream.url,), cache=False), mining=Mining.NEVER)


def test_a_fork_in_front_of_a_transaction_is_refused(upstream: ArbitrumEndpoint) -> None:
    mined = {"blockHash": arbitrum_block(HEAD)["hash"], "transactionIndex": "0x0"}
    upstream.methods["eth_getTransactionReceipt"] = lambda digest: mined
    options = ForkOptions(urls=(upstream.url,), cache=False, transaction=b"\x11" * 32)
    with pytest.raises(ForkError, match="cannot be executed again"):
        forked_node(options)


# --- NodeInterface --------------------------------------------------------------------------------

NODE_INTERFACE = "0x" + "c8".rjust(40, "0")


def words(node: JsonRpcClient, signature: str, *values: Any) -> list[int]:
    types = signature[signature.index("(") + 1 : -1]
    data = bytes.fromhex(selector(signature)[2:]) + encode_abi(
        types.split(",") if types else [], values
    )
    request = {"from": BOB, "to": NODE_INTERFACE, "data": hex_bytes(data)}
    found = node.call("eth_call", request, "latest")[2:]
    return [int(found[at : at + 64], 16) for at in range(0, len(found), 64)]


def test_components_of_an_estimate(node: JsonRpcClient) -> None:
    signature = "gasEstimateComponents(address,bool,bytes)"
    total, for_l1, base_fee, price = words(node, signature, BOB, False, b"")
    assert (base_fee, price) == (BASE_FEE, L1_PRICE)
    assert total - for_l1 == 21_000
    signature = "gasEstimateL1Component(address,bool,bytes)"
    assert words(node, signature, BOB, False, b"") == [for_l1, base_fee, price]


def test_numbers_of_l1_by_numbers_of_arbitrum(
    node: JsonRpcClient, upstream: ArbitrumEndpoint
) -> None:
    assert words(node, "nitroGenesisBlock()") == [22_207_818]
    node.call("evm_mine")
    assert words(node, "blockL1Num(uint64)", NUMBER + 1) == [L1_NUMBER + 1]
    asked: list[Any] = []
    upstream.methods["eth_call"] = lambda *params: asked.append(params) or "0x" + "07".zfill(64)
    assert words(node, "blockL1Num(uint64)", NUMBER - 5) == [7]
    assert words(node, "findBatchContainingBlock(uint64)", NUMBER - 5) == [7]
    assert [params[1] for params in asked] == [hex(NUMBER)] * 2


def test_estimates_of_tickets_are_refused(node: JsonRpcClient) -> None:
    with pytest.raises(RpcRefusal, match="NodeInterface: this method is not supported"):
        words(node, "estimateRetryableTicket()")
    short = {"to": NODE_INTERFACE, "data": selector("gasEstimateComponents(address,bool,bytes)")}
    assert "too short" in refusal(node, "eth_call", short, "latest")
