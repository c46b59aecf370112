"""Tests fees: suggestions, the next base fee, and the fee history."""

from typing import Any

import pytest

from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Block, Header, Receipt
from fastevm.core.spec.schedule import schedule_for

from .conftest import Caller, MakeCaller
from .fakes import FakeChain, FakeNode, FakePending, chain_of, header

A = b"\xaa" * 20
OSAKA = schedule_for("osaka")


def paying(tip: int) -> Transaction:
    return Transaction.build(
        sender=A, max_fee_per_gas=10**6, max_priority_fee_per_gas=tip, gas_limit=21_000, to=A
    )


def receipt(price: int, gas: int) -> Receipt:
    return Receipt(
        tx_type=2,
        status=1,
        post_state=None,
        cumulative_gas_used=gas,
        logs=(),
        bloom=bytes(256),
        gas_used=gas,
        effective_gas_price=price,
    )


class OsakaChain(FakeChain):
    """A chain with the rules of Osaka. It fails if it is asked for rules after an unknown block."""

    def schedule_of(self, block_hash: bytes) -> Any:
        assert self.knows(block_hash)
        return OSAKA

    def schedule_for_child(self, parent: Block | Header, timestamp: int) -> Any:
        assert self.knows(parent.hash)
        return OSAKA


def osaka_header(number: int, **fields: Any) -> Any:
    defaults = {
        "base_fee_per_gas": 1000,
        "gas_limit": 100_000,
        "gas_used": 50_000,
        "excess_blob_gas": 0,
        "blob_gas_used": 0,
        "withdrawals_root": bytes(32),
    }
    return header(number, **{**defaults, **fields})


@pytest.fixture
def caller(make_caller: MakeCaller) -> Caller:
    """Provides a caller on two blocks: an empty block, and a block with tips of 1, 2 and 3 wei."""
    tips = (3, 1, 2)
    full = Block(
        osaka_header(1, gas_used=100_000, blob_gas_used=2 * 131_072),
        tuple(paying(tip) for tip in tips),
    )
    chain = OsakaChain([Block(osaka_header(0)), full])
    chain.receipts[full.hash] = tuple(
        receipt(1000 + tip, gas) for tip, gas in zip(tips, (50_000, 25_000, 25_000), strict=True)
    )
    return make_caller(FakeNode(chain))


async def test_the_base_fee_is_that_of_the_next_block(caller: Caller) -> None:
    assert await caller.result("eth_baseFee") == hex(1125)
    assert await caller.result("eth_blobBaseFee") == "0x1"


async def test_before_fees_there_are_none(make_caller: MakeCaller) -> None:
    caller = make_caller(FakeNode(chain_of(2)))
    assert await caller.result("eth_baseFee") is None
    assert await caller.result("eth_blobBaseFee") is None
    history = await caller.result("eth_feeHistory", "0x2", "latest", [])
    assert history["baseFeePerGas"] == ["0x0", "0x0", "0x0"]


async def test_suggestions_follow_what_was_paid(caller: Caller, make_caller: MakeCaller) -> None:
    assert await caller.result("eth_maxPriorityFeePerGas") == "0x2"
    assert await caller.result("eth_gasPrice") == hex(1002)
    empty = make_caller(FakeNode(chain_of(2)))
    assert await empty.result("eth_maxPriorityFeePerGas") == hex(10**9)


async def test_the_history_has_one_fee_more_than_blocks(caller: Caller) -> None:
    history = await caller.result("eth_feeHistory", "0x2", "latest", [0, 25, 50, 75, 100])
    assert history == {
        "oldestBlock": "0x0",
        "baseFeePerGas": [hex(1000), hex(1000), hex(1125)],
        "gasUsedRatio": [0.5, 1.0],
        "baseFeePerBlobGas": ["0x1", "0x1", "0x1"],
        "blobGasUsedRatio": [0, 2 / 9],
        "reward": [["0x0"] * 5, ["0x1", "0x1", "0x2", "0x3", "0x3"]],
    }


@pytest.mark.parametrize("count", ["0x1", "1", 1])
async def test_a_count_may_be_written_in_several_ways(caller: Caller, count: Any) -> None:
    history = await caller.result("eth_feeHistory", count, "latest")
    assert history["oldestBlock"] == "0x1"
    assert "reward" not in history


async def test_more_blocks_than_there_are_mean_all(caller: Caller) -> None:
    history = await caller.result("eth_feeHistory", "0xffff", "latest", None)
    assert history["oldestBlock"] == "0x0"
    assert len(history["gasUsedRatio"]) == 2


async def test_no_blocks_are_an_empty_history(caller: Caller) -> None:
    history = await caller.result("eth_feeHistory", "0x0", "latest", [])
    assert history == {"oldestBlock": "0x0", "gasUsedRatio": None}


async def test_the_pending_block_may_be_the_newest(caller: Caller) -> None:
    node = caller.node
    pending = osaka_header(2, parent_hash=node.chain.head.hash)
    node.pending_block = FakePending(header=pending, transactions=(), receipts=())
    history = await caller.result("eth_feeHistory", "0x2", "pending", [50])
    assert history == {
        "oldestBlock": "0x1",
        "baseFeePerGas": [hex(1000), hex(1000), hex(1000)],
        "gasUsedRatio": [1.0, 0.5],
        "baseFeePerBlobGas": ["0x1", "0x1", "0x1"],
        "blobGasUsedRatio": [2 / 9, 0],
        "reward": [["0x2"], ["0x0"]],
    }


async def test_pending_blocks_before_the_newest_are_in_the_history(caller: Caller) -> None:
    node = caller.node
    first = osaka_header(2, parent_hash=node.chain.head.hash, gas_used=25_000)
    newest = osaka_header(3, parent_hash=first.hash)
    node.pending_block = FakePending(header=newest, previous=FakePending(header=first))
    history = await caller.result("eth_feeHistory", "0x3", "pending", [])
    assert history["oldestBlock"] == "0x1"
    assert history["gasUsedRatio"] == [1.0, 0.25, 0.5]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (["0x1", "0x9", []], "request beyond head block: requested 9, head 1"),
        (["0x1", "latest", [101]], "invalid reward percentile: 101.000000"),
        (["0x1", "latest", [-1]], "invalid reward percentile: -1.000000"),
        (
            ["0x1", "latest", [5, 5]],
            "invalid reward percentile: #0:5.000000 >= #1:5.000000",
        ),
        (["0x1", "latest", [1] * 101], "invalid reward percentile: over the query limit 100"),
    ],
)
async def test_impossible_histories_are_refused(
    caller: Caller, params: list[Any], message: str
) -> None:
    assert await caller.error("eth_feeHistory", *params) == (-32000, message)


@pytest.mark.parametrize("count", [-1, True, 1.5, None, [], "x", "0x01", "²"])
async def test_a_bad_count_is_refused(caller: Caller, count: Any) -> None:
    code, _ = await caller.error("eth_feeHistory", count, "latest", [])
    assert code == -32602
