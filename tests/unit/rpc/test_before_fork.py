"""Tests that the upstream answers for blocks up to the fork block."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from fastevm.core.execution.types import Block, Log
from fastevm.core.primitives.hex import hex_bytes
from fastevm.core.state.layer import Layer
from fastevm.rpc.dispatch.batch import IN_WORKERS
from fastevm.rpc.dispatch.registry import METHODS
from fastevm.rpc_client.messages import RpcRefusal

from .conftest import Caller, MakeCaller
from .fakes import FakeChain, FakeNode, header
from .test_logs import T1, TRANSACTION, A, bloom_of, receipt

FORK = 100
OLD_HASH, LATER_HASH = b"\x01" * 32, b"\x02" * 32
OLD_TX, LATER_TX = b"\x03" * 32, b"\x04" * 32
ADDRESS = hex_bytes(A)
LATEST, EARLIEST = "latest", "earliest"


@dataclass
class FakeHistory:
    """The upstream of a fork at block FORK. It has OLD_HASH and OLD_TX. Tests set its answers."""

    number: int = FORK
    asked: list[tuple[str, list[Any]]] = field(default_factory=list)
    answers: dict[str, Any] = field(default_factory=dict)

    def request(self, method: str, params: Sequence[Any]) -> Any:
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()  # must not run on the event loop
        self.asked.append((method, list(params)))
        answer = self.answers.get(method, f"{method} upstream")
        if isinstance(answer, Exception):
            raise answer
        return answer

    def has_block(self, block_hash: bytes) -> bool:
        return block_hash in (OLD_HASH, hash_of_fork())

    def has_transaction(self, tx_hash: bytes) -> bool:
        return tx_hash == OLD_TX


def fork_block() -> Block:
    return Block(header(FORK, gas_limit=30_000_000))


def hash_of_fork() -> bytes:
    return fork_block().hash


def forked_node(*logs: tuple[Log, ...]) -> FakeNode:
    """Returns a node with one block above the fork block for each tuple of logs."""
    chain = FakeChain([fork_block()])
    for number, of_block in enumerate(logs, FORK + 1):
        fields = {"parent_hash": chain.head.hash, "logs_bloom": bloom_of(of_block)}
        block = Block(header(number, gas_limit=30_000_000, **fields), (TRANSACTION,))
        chain.blocks.append(block)
        chain.receipts[block.hash] = (receipt(*of_block),)
    chain.layers[chain.head.hash] = Layer.of({A: {"balance": 7}})
    return FakeNode(chain, history=FakeHistory())


@pytest.fixture
def forked(make_caller: MakeCaller) -> Caller:
    return make_caller(forked_node((), ()))


BLOCK_METHODS: list[tuple[str, list[Any]]] = [
    ("eth_getBlockByNumber", ["0x5a", False]),
    ("eth_getBlockByNumber", ["earliest", True]),
    ("eth_getBlockReceipts", ["0x5a"]),
    ("eth_getBlockTransactionCountByNumber", ["0x5a"]),
    ("eth_getUncleCountByBlockNumber", ["0x5a"]),
    ("eth_getUncleByBlockNumberAndIndex", ["0x5a", "0x0"]),
    ("eth_getTransactionByBlockNumberAndIndex", ["0x5a", "0x0"]),
    ("debug_getRawBlock", ["0x5a"]),
    ("debug_traceBlockByNumber", ["0x5a"]),
    ("eth_getBlockByHash", [hex_bytes(OLD_HASH), False]),
    ("eth_getBlockTransactionCountByHash", [hex_bytes(OLD_HASH)]),
    ("debug_traceBlockByHash", [hex_bytes(OLD_HASH)]),
    ("debug_traceTransaction", [hex_bytes(OLD_TX)]),
    ("eth_getRawTransactionByHash", [hex_bytes(OLD_TX)]),
    ("trace_transaction", [hex_bytes(OLD_TX)]),
    ("trace_replayTransaction", [hex_bytes(OLD_TX), ["trace"]]),
    ("trace_block", ["0x5a"]),
    ("trace_replayBlockTransactions", ["0x5a", ["trace"]]),
    ("trace_filter", [{"fromBlock": "0x1", "toBlock": "0x5a"}]),
    ("ots_getBlockDetails", ["0x5a"]),
    ("ots_getBlockDetails", [90]),
    ("ots_traceTransaction", [hex_bytes(OLD_TX)]),
    ("eth_getHeaderByNumber", ["0x5a"]),
    ("eth_getHeaderByHash", [hex_bytes(OLD_HASH)]),
    ("eth_getRawTransactionByBlockNumberAndIndex", ["0x5a", "0x0"]),
]
STATE_METHODS: list[tuple[str, list[Any]]] = [
    ("eth_getBalance", [ADDRESS, "0x5a"]),
    ("eth_getTransactionCount", [ADDRESS, "earliest"]),
    ("eth_getCode", [ADDRESS, {"blockHash": hex_bytes(OLD_HASH)}]),
    ("eth_getStorageAt", [ADDRESS, "0x0", "0x5a"]),
    ("eth_getProof", [ADDRESS, [], "0x5a"]),
    ("eth_call", [{"to": ADDRESS}, "0x5a"]),
    ("eth_estimateGas", [{"to": ADDRESS}, "0x5a"]),
    ("eth_simulateV1", [{"blockStateCalls": [{}]}, "0x5a"]),
    ("eth_createAccessList", [{"to": ADDRESS}, "0x5a"]),
    ("debug_traceCall", [{"to": ADDRESS}, "0x5a"]),
    ("trace_call", [{"to": ADDRESS}, ["trace"], "0x5a"]),
    ("eth_callMany", [[], {"blockNumber": "0x5a"}]),
    ("eth_getAccountInfo", [ADDRESS, "0x5a"]),
    ("eth_getAccount", [ADDRESS, "0x5a"]),
]


@pytest.mark.parametrize(("method", "params"), BLOCK_METHODS + STATE_METHODS)
async def test_what_lies_before_the_fork_is_asked_of_the_upstream_as_it_was_written(
    forked: Caller, method: str, params: list[Any]
) -> None:
    assert await forked.result(method, *params) == f"{method} upstream"
    assert forked.node.history.asked == [(method, params)]


@pytest.mark.parametrize(
    ("method", "params"), [item for item in BLOCK_METHODS if item[1][0] == "0x5a"]
)
@pytest.mark.parametrize("tag", ["latest", hex(FORK)])
async def test_the_block_of_the_fork_itself_is_asked_by_its_number(
    make_caller: MakeCaller, method: str, params: list[Any], tag: str
) -> None:
    forked = make_caller(forked_node())
    assert await forked.result(method, tag, *params[1:]) == f"{method} upstream"
    assert forked.node.history.asked == [(method, [hex(FORK), *params[1:]])]


async def test_the_block_of_the_fork_is_asked_by_its_hash_too(make_caller: MakeCaller) -> None:
    forked = make_caller(forked_node())
    params = [hex_bytes(forked.node.chain.head.hash), False]
    assert await forked.result("eth_getBlockByHash", *params) == "eth_getBlockByHash upstream"
    assert forked.node.history.asked == [("eth_getBlockByHash", params)]


async def test_a_filter_does_not_lie_on_both_sides_of_the_fork(forked: Caller) -> None:
    wanted = {"fromBlock": "0x1", "toBlock": "latest"}
    code, message = await forked.error("trace_filter", wanted)
    assert (code, message.startswith(f"blocks up to {FORK}")) == (-32602, True)


async def test_the_state_at_the_fork_and_above_it_is_here(make_caller: MakeCaller) -> None:
    forked = make_caller(forked_node())
    for block in ("latest", "pending", hex(FORK)):
        assert await forked.result("eth_getBalance", ADDRESS, block) == "0x7"
    assert forked.node.history.asked == []


async def test_blocks_above_the_fork_are_here(forked: Caller) -> None:
    head = forked.node.chain.head
    found = await forked.result("eth_getBlockByNumber", "latest", False)
    assert found["hash"] == hex_bytes(head.hash)
    assert await forked.result("eth_getBlockByNumber", hex(FORK + 3), False) is None
    assert forked.node.history.asked == []


async def test_hashes_that_the_upstream_has_above_the_fork_only_are_unknown(
    forked: Caller,
) -> None:
    assert await forked.result("eth_getBlockByHash", hex_bytes(LATER_HASH), False) is None
    assert await forked.result("eth_getRawTransactionByHash", hex_bytes(LATER_TX)) == "0x"
    code, message = await forked.error("debug_traceTransaction", hex_bytes(LATER_TX))
    assert (code, message) == (-32000, "transaction not found")
    assert forked.node.history.asked == []


@pytest.mark.parametrize("method", ["eth_getTransactionByHash", "eth_getTransactionReceipt"])
async def test_a_transaction_of_a_later_block_of_the_upstream_is_unknown(
    forked: Caller, method: str
) -> None:
    answers = forked.node.history.answers
    answers[method] = found = {"blockNumber": hex(FORK)}
    assert await forked.result(method, hex_bytes(OLD_TX)) == found
    answers[method] = {"blockNumber": hex(FORK + 1)}
    assert await forked.result(method, hex_bytes(LATER_TX)) is None
    answers[method] = {"blockNumber": None}
    assert await forked.result(method, hex_bytes(LATER_TX)) is None


async def test_a_refusal_of_the_upstream_keeps_its_code_and_data(forked: Caller) -> None:
    refusal = RpcRefusal(3, "execution reverted", "0x08c379a0")
    forked.node.history.answers["eth_call"] = refusal
    answer = await forked.ask("eth_call", {"to": ADDRESS}, "0x5a")
    assert answer["error"] == {"code": 3, "message": "execution reverted", "data": "0x08c379a0"}


LOGS = ((Log(A, (T1,), b"one"),), (Log(A, (), b"two"),))


async def test_logs_across_the_fork_come_from_both_sides_in_order(
    make_caller: MakeCaller,
) -> None:
    forked = make_caller(forked_node(*LOGS))
    forked.node.history.answers["eth_getLogs"] = [{"data": "0xaa"}]
    found = await forked.result("eth_getLogs", {"fromBlock": "0x5a", "address": ADDRESS})
    assert [log["data"] for log in found] == ["0xaa", hex_bytes(b"one"), hex_bytes(b"two")]
    asked = {"fromBlock": "0x5a", "toBlock": hex(FORK), "address": [ADDRESS]}
    assert forked.node.history.asked == [("eth_getLogs", [asked])]


@pytest.mark.parametrize("upstream", [[], [{"data": "0xaa"}]])
async def test_a_side_without_logs_adds_nothing(
    make_caller: MakeCaller, upstream: list[Any]
) -> None:
    forked = make_caller(forked_node(*LOGS))
    forked.node.history.answers["eth_getLogs"] = upstream
    wanted = {"fromBlock": "earliest", "toBlock": hex(FORK), "topics": [None, hex_bytes(T1)]}
    assert await forked.result("eth_getLogs", wanted) == upstream
    asked = {"fromBlock": "0x0", "toBlock": hex(FORK), "topics": [None, [hex_bytes(T1)]]}
    assert forked.node.history.asked == [("eth_getLogs", [asked])]


async def test_logs_above_the_fork_ask_nobody(make_caller: MakeCaller) -> None:
    forked = make_caller(forked_node(*LOGS))
    found = await forked.result("eth_getLogs", {"fromBlock": hex(FORK + 1)})
    assert [log["data"] for log in found] == [hex_bytes(b"one"), hex_bytes(b"two")]
    filter_id = await forked.result("eth_newFilter", {"fromBlock": hex(FORK + 1)})
    assert await forked.result("eth_getFilterLogs", filter_id) == found
    assert forked.node.history.asked == []


async def test_logs_of_a_block_by_hash(make_caller: MakeCaller) -> None:
    forked = make_caller(forked_node(*LOGS))
    forked.node.history.answers["eth_getLogs"] = [{"data": "0xaa"}]
    for block_hash in (OLD_HASH, hash_of_fork()):
        wanted = {"blockHash": hex_bytes(block_hash)}
        assert await forked.result("eth_getLogs", wanted) == [{"data": "0xaa"}]
    head = {"blockHash": hex_bytes(forked.node.chain.head.hash)}
    assert [log["data"] for log in await forked.result("eth_getLogs", head)] == [hex_bytes(b"two")]
    unknown = {"blockHash": hex_bytes(LATER_HASH)}
    assert await forked.error("eth_getLogs", unknown) == (-32000, "unknown block")


async def test_a_history_of_fees_across_the_fork_is_one(forked: Caller) -> None:
    forked.node.history.answers["eth_feeHistory"] = {
        "oldestBlock": "0x63",
        "baseFeePerGas": ["0x1", "0x2", "0x9"],
        "gasUsedRatio": [0.25, 0.5],
        "reward": [["0x3"], ["0x4"]],
    }
    found = await forked.result("eth_feeHistory", 4, "latest", [50])
    assert found["oldestBlock"] == "0x63"
    assert found["baseFeePerGas"][:2] == ["0x1", "0x2"]
    assert found["gasUsedRatio"][:2] == [0.25, 0.5]
    assert found["baseFeePerBlobGas"][:2] == ["0x0", "0x0"]
    sizes = {name: len(values) for name, values in found.items() if name != "oldestBlock"}
    assert sizes == {
        "baseFeePerGas": 5, "baseFeePerBlobGas": 5, "gasUsedRatio": 4, "blobGasUsedRatio": 4,
        "reward": 4,
    }  # fmt: skip
    assert forked.node.history.asked == [("eth_feeHistory", ["0x2", hex(FORK), [50.0]])]


async def test_a_history_of_fees_below_the_fork_is_the_upstreams(forked: Caller) -> None:
    assert await forked.result("eth_feeHistory", 4, "0x5a", []) == "eth_feeHistory upstream"
    assert forked.node.history.asked == [("eth_feeHistory", [4, "0x5a", []])]


async def test_a_batch_across_the_fork_keeps_its_order(forked: Caller) -> None:
    calls = [
        {"jsonrpc": "2.0", "id": n, "method": "eth_getBalance", "params": [ADDRESS, block]}
        for n, block in enumerate(("latest", "0x5a", "latest", "earliest"))
    ]
    answers = await forked.send(str(calls).replace("'", '"'))
    assert [answer["id"] for answer in answers] == [0, 1, 2, 3]
    here, there = "0x7", "eth_getBalance upstream"
    assert [answer["result"] for answer in answers] == [here, there, here, there]


def test_every_method_of_a_block_can_run_in_a_worker() -> None:
    asked = {name for name, _ in BLOCK_METHODS + STATE_METHODS}
    asked |= {"eth_getLogs", "eth_feeHistory", "eth_getTransactionReceipt"}
    places = {METHODS[name].run_on for name in asked}
    assert {place.name for place in places} <= {place.name for place in IN_WORKERS} | {"LOOP"}
