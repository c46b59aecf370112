"""``fastevm_watch`` over a WebSocket: answers are those of eth_call, changes come in order."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import pytest

from fastevm.bench.node.launch import server_of
from fastevm.node import Mining, Node, dev_node
from fastevm.rpc.limits import Limits
from fastevm.rpc.transport.server import Server
from tests.block_times import UNHURRIED_MS
from tests.rpc.sockets import SocketClient

COUNTER, CLOCK, PAYEE = ("0x" + pair * 20 for pair in ("c0", "c1", "c2"))
# With more than 4 bytes of data it stores the first 32 in slot 0, else it returns the slot.
COUNTER_CODE = "0x60043611600f575f545f5260205ff35b5f355f5500"
CLOCK_CODE = "0x435f5260205ff3"  # returns NUMBER
GET = {"to": COUNTER, "function": "get() returns (uint256)"}


def word(number: int) -> str:
    return f"0x{number:064x}"


class Stand:
    """A node whose blocks and slices the test makes, with a server."""

    def __init__(self, node: Node, server: Server, http: aiohttp.ClientSession) -> None:
        self.node = node
        self.server = server
        self.http = http

    async def client(self, dialect: int = 0) -> SocketClient:
        return SocketClient(await self.http.ws_connect(self.server.urls[dialect]))

    async def store(self, client: SocketClient, value: int) -> None:
        """Submit a transaction that sets the counter."""
        sender = "0x" + self.node.accounts[0].address.hex()
        call = {"from": sender, "to": COUNTER, "data": word(value), "gas": "0x20000"}
        await client.result("eth_sendTransaction", call)

    async def mine(self) -> None:
        await asyncio.to_thread(self.node.mine)


async def stand_of(*, mining: Mining = Mining.MANUAL, **limits: Any) -> Stand:
    node = dev_node(mining=mining, block_time_ms=UNHURRIED_MS, slice_interval_ms=50)
    server = server_of(node, "preconf", "geth", limits=Limits(**limits), threads=1)
    await server.start()
    stand = Stand(node, server, aiohttp.ClientSession())
    client = await stand.client()
    await client.result("anvil_setCode", COUNTER, COUNTER_CODE)
    await client.result("anvil_setCode", CLOCK, CLOCK_CODE)
    await stand.mine()
    return stand


async def closed(stand: Stand) -> None:
    await stand.http.close()
    await stand.server.stop()


@pytest.fixture
async def stand() -> AsyncIterator[Stand]:
    made = await stand_of()
    yield made
    await closed(made)


@pytest.fixture
async def slicing() -> AsyncIterator[Stand]:
    made = await stand_of(mining=Mining.CADENCE)
    yield made
    await closed(made)


async def eventually(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.01)


async def watch(client: SocketClient, **given: Any) -> Any:
    """Subscribe and return the first message."""
    name = await client.subscribe("fastevm_watch", given)
    told, first = await client.note()
    assert (told, first["snapshot"], first["sequence"]) == (name, True, 1)
    return first


# --- answers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", [0, 1])
async def test_the_first_message_has_every_answer(stand: Stand, dialect: int) -> None:
    client = await stand.client(dialect)
    calls = [{"to": COUNTER}, {"to": COUNTER, "gas": "0x10"}, {"to": CLOCK}]
    bundle = [{"to": COUNTER, "data": word(5)}, {"to": COUNTER}]
    first = await watch(client, calls=calls, bundles=[bundle], views=[GET], block="latest")
    answers = first["answers"]
    assert [answer["question"] for answer in answers] == [0, 1, 2, 3, 4]
    assert answers[0]["returnData"] == word(0)
    assert (answers[1]["status"], "error" in answers[1]) == ("0x0", True)
    assert answers[2]["returnData"] == await client.result("eth_call", calls[2], "latest")
    assert [call["returnData"] for call in answers[3]["calls"]] == ["0x", word(5)]
    assert answers[4]["value"] == "0x0"
    head = await client.result("eth_getBlockByNumber", "latest", False)
    assert (first["blockNumber"], first["blockHash"]) == (head["number"], head["hash"])
    assert (first["index"], first["missed"]) == (None, 0)


async def test_a_block_sends_the_answers_that_it_changed(stand: Stand) -> None:
    client, caller = await stand.client(), await stand.client()
    await watch(client, calls=[{"to": COUNTER}, {"to": PAYEE}], views=[GET], block="latest")
    await stand.store(caller, 7)
    await stand.mine()
    _, change = await client.note()
    assert (change["sequence"], change["blockNumber"]) == (2, "0x2")
    assert [answer["question"] for answer in change["answers"]] == [0, 2]
    assert change["answers"][1]["value"] == "0x7"
    await stand.mine()
    await client.silence()


async def test_a_question_about_the_block_changes_with_every_block(stand: Stand) -> None:
    client = await stand.client()
    await watch(client, calls=[{"to": CLOCK}], block="latest")
    for number in (2, 3, 4):
        await stand.mine()
        _, change = await client.note()
        assert change["answers"][0]["returnData"] == word(number)


async def test_pending_answers_follow_the_slices(slicing: Stand) -> None:
    client, caller = await slicing.client(), await slicing.client()
    first = await watch(client, calls=[{"to": COUNTER}])
    assert (first["blockHash"], isinstance(first["index"], int)) == (None, True)
    last = -1
    for value in (3, 4, 5):
        await slicing.store(caller, value)
        _, change = await client.note()
        assert change["answers"][0]["returnData"] == word(value)
        assert change["index"] > last
        last = change["index"]


async def test_a_withdrawn_slice_takes_its_answer_back(slicing: Stand) -> None:
    client, caller = await slicing.client(), await slicing.client()
    await watch(client, views=[GET])
    await slicing.store(caller, 9)
    assert (await client.note())[1]["answers"][0]["value"] == "0x9"
    await caller.result("anvil_dropAllTransactions")
    await asyncio.to_thread(slicing.node.producer.stop)
    slicing.node.publish(None)
    _, back = await client.note()
    assert (back["answers"][0]["value"], back["index"]) == ("0x0", None)


async def test_a_reorganisation_sends_the_answers_of_the_new_chain(stand: Stand) -> None:
    client, caller = await stand.client(), await stand.client()
    await watch(client, views=[GET], block="latest")
    await stand.store(caller, 9)
    await stand.mine()
    assert (await client.note())[1]["answers"][0]["value"] == "0x9"
    await caller.result("anvil_reorg", 1, [])
    assert (await client.note())[1]["answers"][0]["value"] == "0x0"


# --- what counts as a change ----------------------------------------------------------------------


async def test_a_threshold_is_reported_when_it_is_crossed(stand: Stand) -> None:
    client, caller = await stand.client(), await stand.client()
    await watch(client, views=[{**GET, "crosses": "0xa"}], block="latest")
    seen = []
    for value in (5, 9, 10, 11, 30, 2, 3):
        await stand.store(caller, value)
        await stand.mine()
        if value in (10, 2):
            seen.append((await client.note())[1]["answers"][0]["value"])
        else:
            await client.silence()
    assert seen == ["0xa", "0x2"]


async def test_gas_counts_from_the_wanted_difference_on(stand: Stand) -> None:
    client, caller = await stand.client(), await stand.client()
    call = {"to": COUNTER, "data": word(1)}  # 20,000 gas more if the slot was 0
    await watch(client, calls=[call], changes=["status"], gasBy=hex(10_000), block="latest")
    for value, is_sent in ((5, True), (6, False), (0, True)):
        await stand.store(caller, value)
        await stand.mine()
        if is_sent:
            assert (await client.note())[1]["answers"][0]["question"] == 0
        else:
            await client.silence()


async def test_progress_is_sent_without_changes_if_it_is_wanted(stand: Stand) -> None:
    client = await stand.client()
    await watch(client, calls=[{"to": COUNTER}], block="latest", progress=True)
    await stand.mine()
    _, progress = await client.note()
    assert (progress["blockNumber"], progress["answers"]) == ("0x2", [])


# --- subscriptions --------------------------------------------------------------------------------


async def test_equal_questions_run_once_for_all(stand: Stand) -> None:
    clients = [await stand.client() for _ in range(5)]
    for client in clients:
        await watch(client, calls=[{"to": COUNTER}, {"to": CLOCK}], block="latest")
    gauges = stand.server.hub.watching.gauges()
    assert (gauges["watch_questions"], gauges["watch_distinct_questions"]) == (10, 2)
    assert (gauges["watch_subscriptions"], gauges["watch_ran_total"]) == (5, 2)
    await stand.mine()
    for client in clients:
        assert [answer["question"] for answer in (await client.note())[1]["answers"]] == [1]


@pytest.mark.parametrize("method", ["eth_unsubscribe", "fastevm_unwatch"])
async def test_who_ends_a_watch_hears_no_more(stand: Stand, method: str) -> None:
    client = await stand.client()
    name = await client.subscribe("fastevm_watch", {"calls": [{"to": CLOCK}], "block": "latest"})
    await client.note()
    assert await client.result(method, name) is True
    assert await client.result("eth_unsubscribe", name) is False
    await stand.mine()
    await client.silence()
    gauges = stand.server.hub.watching.gauges
    await eventually(lambda: gauges()["watch_distinct_questions"] == 0)
    assert gauges()["watch_questions"] == 0


async def test_a_connection_that_ends_takes_its_questions_along(stand: Stand) -> None:
    client, other = await stand.client(), await stand.client()
    await watch(client, calls=[{"to": CLOCK}, {"to": PAYEE}], block="latest")
    await watch(other, calls=[{"to": CLOCK}], block="latest")
    await client.socket.close()
    gauges = stand.server.hub.watching.gauges
    await eventually(lambda: gauges()["watch_distinct_questions"] == 1)
    await stand.mine()
    assert (await other.note())[1]["answers"][0]["question"] == 0


async def test_too_many_questions_of_one_address_are_refused() -> None:
    stand = await stand_of(client_watch_questions=3)
    client = await stand.client()
    await watch(client, calls=[{"to": COUNTER}, {"to": PAYEE}], block="latest")
    refused = await client.ask("eth_subscribe", "fastevm_watch", {"calls": [{"to": CLOCK}] * 2})
    assert refused["error"]["code"] == -32005
    assert "limit 3" in refused["error"]["message"]
    assert stand.server.hub.subscriptions == 1
    await watch(client, calls=[{"to": CLOCK}], block="latest")
    await closed(stand)


async def test_questions_that_use_too_much_gas_end_with_a_reason() -> None:
    stand = await stand_of(client_watch_gas=30_000)
    client = await stand.client()
    name = await client.subscribe(
        "fastevm_watch", {"calls": [{"to": COUNTER}, {"to": PAYEE}], "block": "latest"}
    )
    async with asyncio.timeout(5):
        while "error" not in (message := await client.read())["params"]:
            pass
    assert message["params"]["subscription"] == name
    assert "more than 30000" in message["params"]["error"]["message"]
    await closed(stand)


async def test_who_reads_too_slowly_is_informed_and_gets_the_whole_picture() -> None:
    stand = await stand_of(outbound_messages=2)
    client, caller = await stand.client(), await stand.client()
    await watch(client, views=[GET, {"to": CLOCK, "function": "n() returns (uint256)"}],
                block="latest", progress=True)  # fmt: skip
    (subscription,) = stand.server.hub.watching._standing
    outbox = subscription.session.outbox  # type: ignore[attr-defined]
    outbox.messages = 0  # as if nothing were read
    await stand.store(caller, 8)
    for _ in range(3):
        await stand.mine()
    await eventually(lambda: stand.server.hub.watching.missed > 0)
    await client.silence()
    outbox.messages = 2
    _, whole = await client.note()
    assert whole["snapshot"] is True
    assert whole["missed"] >= 1
    assert [answer["value"] for answer in whole["answers"]] == ["0x8", whole["blockNumber"]]
    await closed(stand)


async def test_metrics_report_questions_runs_and_hits(stand: Stand) -> None:
    client = await stand.client()
    await watch(client, calls=[{"to": CLOCK}, {"to": COUNTER}], block="latest")
    await stand.mine()
    await client.note()
    async with stand.http.get(stand.server.urls[0] + "/metrics") as response:
        text = await response.text()
    lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")
    assert lines["fastevm_watch_questions"] == "2"
    assert lines["fastevm_watch_ran_total"] == "3"
    assert lines["fastevm_watch_kept_total"] == "1"


async def test_a_wrong_request_is_refused(stand: Stand) -> None:
    client = await stand.client()
    refused = await client.ask("eth_subscribe", "fastevm_watch", {"calls": [], "x": 1})
    assert refused["error"]["code"] == -32602
    assert "unknown member 'x'" in json.dumps(refused)
