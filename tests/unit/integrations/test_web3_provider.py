"""Tests web3.py on a node in the process: blocking, asynchronous, subscriptions, batches."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from web3 import AsyncWeb3, Web3
from web3._utils.contract_sources.contract_data.emitter_contract import (
    EMITTER_CONTRACT_ABI,
    EMITTER_CONTRACT_BYTECODE,
)
from web3._utils.contract_sources.contract_data.revert_contract import (
    REVERT_CONTRACT_ABI,
    REVERT_CONTRACT_BYTECODE,
)
from web3.exceptions import ContractLogicError, Web3RPCError

from fastevm.integrations.web3 import (
    AsyncFastevmProvider,
    FastevmProvider,
    LocalNode,
    PersistentFastevmProvider,
)
from tests.max_wait import MAX_WAIT


@pytest.fixture(scope="module")
def node() -> Iterator[LocalNode]:
    with LocalNode() as made:
        yield made


@pytest.fixture
def w3(node: LocalNode) -> Web3:
    return Web3(FastevmProvider(node))


@pytest.fixture
async def persistent(node: LocalNode) -> AsyncIterator[Any]:
    async with AsyncWeb3(PersistentFastevmProvider(node)) as connected:
        yield connected


def deployed(w3: Web3, abi: Any, code: str) -> Any:
    tx = w3.eth.contract(abi=abi, bytecode=code).constructor().transact()
    return w3.eth.contract(w3.eth.wait_for_transaction_receipt(tx)["contractAddress"], abi=abi)


def payment(w3: Any, accounts: list[Any]) -> Any:
    return {"from": accounts[0], "to": accounts[1], "value": w3.to_wei(1, "gwei")}


def test_a_provider_makes_its_own_node() -> None:
    w3 = Web3(FastevmProvider(chain_id=77, accounts=2, cache_allowed_requests=True))
    assert w3.is_connected()
    assert w3.eth.chain_id == 77
    assert len(w3.eth.accounts) == 2
    w3.provider.node.stop()  # type: ignore[attr-defined]
    assert not w3.is_connected()


def test_a_node_that_is_there_takes_no_options(node: LocalNode) -> None:
    with pytest.raises(ValueError, match="accounts"):
        FastevmProvider(node, accounts=3)


def test_a_payment_is_mined(w3: Web3) -> None:
    accounts = w3.eth.accounts
    before = w3.eth.get_balance(accounts[1])
    receipt = w3.eth.wait_for_transaction_receipt(
        w3.eth.send_transaction(payment(w3, accounts))  # type: ignore[arg-type]
    )
    assert receipt["status"] == 1
    assert w3.eth.get_balance(accounts[1]) - before == 10**9


def test_a_contract_is_deployed_called_and_heard(w3: Web3) -> None:
    w3.eth.default_account = w3.eth.accounts[0]
    emitter = deployed(w3, EMITTER_CONTRACT_ABI, EMITTER_CONTRACT_BYTECODE)
    receipt = w3.eth.wait_for_transaction_receipt(emitter.functions.logSingle(2, 42).transact())
    (event,) = emitter.events.LogSingleArg().process_receipt(receipt)
    assert event["args"]["arg0"] == 42
    assert len(emitter.events.LogSingleArg().get_logs(from_block=0)) == 1


def test_a_revert_is_an_exception_with_its_reason(w3: Web3) -> None:
    w3.eth.default_account = w3.eth.accounts[0]
    contract = deployed(w3, REVERT_CONTRACT_ABI, REVERT_CONTRACT_BYTECODE)
    with pytest.raises(ContractLogicError, match="Function has been reverted"):
        contract.functions.revertWithMessage().call()


def test_an_error_of_the_node_is_one_of_web3(w3: Web3) -> None:
    with pytest.raises(Web3RPCError):
        w3.manager.request_blocking("eth_getBalance", ["0x12", "latest"])


def test_a_batch_is_answered_in_its_order(w3: Web3) -> None:
    account = w3.eth.accounts[5]
    with w3.batch_requests() as batch:
        batch.add(w3.eth.get_block("earliest"))
        batch.add(w3.eth.get_balance(account))
        block, balance = batch.execute()
    assert block["number"] == 0
    assert balance == 10_000 * 10**18


def test_filters_work(w3: Web3) -> None:
    heads = w3.eth.filter("latest")
    sent = w3.eth.send_transaction(payment(w3, w3.eth.accounts))  # type: ignore[arg-type]
    (found,) = heads.get_new_entries()
    assert found == w3.eth.get_transaction_receipt(sent)["blockHash"]


async def test_asynchronous_requests_and_batches(node: LocalNode) -> None:
    w3: Any = AsyncWeb3(AsyncFastevmProvider(node))
    assert await w3.is_connected()
    accounts = await w3.eth.accounts
    sent = await w3.eth.send_transaction(payment(w3, accounts))
    assert (await w3.eth.wait_for_transaction_receipt(sent))["status"] == 1
    async with w3.batch_requests() as batch:
        batch.add(w3.eth.chain_id)
        batch.add(w3.eth.get_block("earliest"))
        chain_id, block = await batch.async_execute()
    assert (chain_id, block["number"]) == (31337, 0)
    await w3.provider.disconnect()
    assert await w3.eth.chain_id == 31337


async def test_subscriptions_come_without_a_socket(persistent: Any) -> None:
    assert await persistent.is_connected()
    accounts = await persistent.eth.accounts
    subscription = await persistent.eth.subscribe("newHeads")
    before = await persistent.eth.block_number
    await persistent.eth.send_transaction(payment(persistent, accounts))
    async for message in persistent.socket.process_subscriptions():
        assert message["subscription"] == subscription
        assert message["result"]["number"] == before + 1
        break
    assert await persistent.eth.unsubscribe(subscription)


async def test_a_conversation_answers_batches(persistent: Any) -> None:
    async with persistent.batch_requests() as batch:
        batch.add(persistent.eth.chain_id)
        batch.add(persistent.eth.get_block("earliest"))
        chain_id, block = await batch.async_execute()
    assert (chain_id, block["number"]) == (31337, 0)


async def test_a_closed_conversation_ends_its_subscriptions(node: LocalNode) -> None:
    provider = PersistentFastevmProvider(node)
    assert not await provider.is_connected()
    with pytest.raises(ConnectionError):
        await provider.socket_send(b"{}")
    async with AsyncWeb3(provider) as w3:
        await w3.eth.subscribe("newHeads")
        assert node._thread.dispatcher.context.hub.subscriptions == 1
    assert not await provider.is_connected()
    while node._thread.dispatcher.context.hub.subscriptions:
        node.request("eth_chainId")


async def test_a_node_that_stops_ends_the_conversation() -> None:
    node = LocalNode()
    provider = PersistentFastevmProvider(node)
    async with AsyncWeb3(provider):
        node.stop()
        async with asyncio.timeout(MAX_WAIT):
            while await provider.is_connected():
                await asyncio.sleep(0.01)
