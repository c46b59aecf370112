"""Tests EVM.fork, the state before a transaction, and replays, against running nodes."""

from __future__ import annotations

import pytest

from fastevm import EVM
from fastevm.bench.remote import market
from fastevm.bench.remote.market_nodes import Upstream
from fastevm.core.execution.types import Receipt
from fastevm.errors import ForkError
from fastevm.fork import RemoteBlock, RemoteSource, replay, rules_of
from fastevm.fork.transaction_replay import differences


def test_a_fork_calls_like_its_upstream(either: Upstream) -> None:
    evm = EVM.fork(either.url, cache=False)
    call = market.swap()
    said = either.ask("eth_call", call, "latest")
    found = evm.call(call["to"], call["data"], sender=call["from"])
    assert "0x" + found.output.hex() == said
    assert evm.chain_id == int(either.ask("eth_chainId"), 16)


def test_a_cold_call_takes_at_most_three_round_trips(either: Upstream) -> None:
    evm = EVM.fork(either.url, cache=False)
    remote = evm.state.remote_state
    assert remote is not None
    call = market.multicall(0)
    assert evm.call(call["to"], call["data"], sender=call["from"]).success
    assert remote.rounds <= 3


def test_changes_stay_here(either: Upstream) -> None:
    evm = EVM.fork(either.url, cache=False)
    holder = market.holders()[0].address
    before = either.ask("eth_getBalance", "0x" + holder.hex(), "latest")
    assert evm.balance(holder) == int(before, 16)
    with evm.snapshot():
        evm.set_account(holder, balance=7)
        assert evm.balance(holder) == 7
    assert evm.balance(holder) == int(before, 16)
    assert either.ask("eth_getBalance", "0x" + holder.hex(), "latest") == before


@pytest.mark.parametrize("index", [0, 1, 7, 20])
def test_the_state_in_front_of_a_transaction(either: Upstream, index: int) -> None:
    """Executing the remaining transactions on the state must give the state after the block."""
    assert either.busy is not None
    number = either.busy.number
    evm = EVM.fork(either.url, number, tx_index=index, cache=False)
    behind = EVM.fork(either.url, number, cache=False)
    transactions = either.ask("eth_getBlockByNumber", hex(number), True)["transactions"]
    assert evm.nonce(transactions[0]["from"]) == int(transactions[0]["nonce"], 16) + (index > 0)
    for transaction in transactions[index:]:
        outcome = evm.transact(
            transaction["to"], transaction["input"], sender=transaction["from"],
            value=int(transaction["value"], 16), gas=int(transaction["gas"], 16),
            gas_price=int(transaction["gasPrice"], 16),
        )  # fmt: skip
        assert outcome.success
    for transaction in transactions:
        assert evm.nonce(transaction["from"]) == behind.nonce(transaction["from"])
    for token in market.TOKEN_ADDRESSES[:10]:
        for holder in range(5):
            slot = market.token_slot_of(holder)
            assert evm.storage(token, slot) == behind.storage(token, slot)


def test_there_is_no_state_in_front_of_a_transaction_beyond_the_block(own: Upstream) -> None:
    assert own.busy is not None
    with pytest.raises(ForkError, match="has 20 transactions"):
        EVM.fork(own.url, own.busy.number, tx_index=21, cache=False)


@pytest.mark.parametrize("index", [0, 9, 19])
def test_a_replay_gives_what_the_chain_says(either: Upstream, index: int) -> None:
    assert either.busy is not None
    found = replay(either.url, either.busy.transactions[index], cache=False)
    assert found.matches, found.differences
    assert found.index == index
    assert found.trace["type"] == "CALL"
    assert found.state_difference["post"]
    with RemoteSource.open(either.url, cache=False) as source:
        said = source.request("debug_traceTransaction", (
            either.busy.transactions[index],
            {"tracer": "prestateTracer", "tracerConfig": {"diffMode": True}},
        ))  # fmt: skip
    assert found.state_difference["post"].keys() == said["post"].keys()


def test_a_block_gives_the_receipts_of_the_chain(either: Upstream) -> None:
    assert either.busy is not None
    with RemoteSource.open(either.url, cache=False) as source:
        block = RemoteBlock(source, rules_of(source), either.busy.number)
        receipts = block.receipts()
        said = source.receipts(block.found)
    assert len(receipts) == len(said) == len(either.busy.transactions)
    for own, other in zip(receipts, said, strict=True):
        assert differences(own, other) == []
    remote = block.layer.remote_state
    assert remote is not None
    assert remote.rounds <= 5


def test_a_replay_tells_what_differs() -> None:
    receipt = Receipt(
        tx_type=0, status=1, post_state=None, cumulative_gas_used=5, logs=(), bloom=bytes(256),
        gas_used=5, effective_gas_price=1,
    )  # fmt: skip
    log = {"address": "0x" + "11" * 20, "data": "0x"}
    said = {"status": "0x0", "gasUsed": "0x6", "logs": [log]}
    assert differences(receipt, said) == [
        "status: 1 here, 0 on the chain",
        "gas used: 5 here, 6 on the chain",
        "logs: 0 here, 1 on the chain",
    ]


def test_a_replay_of_an_unknown_transaction_says_so(own: Upstream) -> None:
    with pytest.raises(ForkError, match="no mined transaction 0x1111"):
        replay(own.url, b"\x11" * 32, cache=False)
