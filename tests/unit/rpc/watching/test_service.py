"""Tests that ``fastevm_watch`` gives the answers of eth_call, and changes in order."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import pytest

from fastevm.bench.node.launch import server_of
from fastevm.node import Mining, Node, dev_node
from fastevm.rpc.limits import WATCH_ANSWER, Limits
from fastevm.rpc.transport.server import Server
from fastevm.rpc.watching import service
from fastevm.rpc.watching.answers import answer_json
from fastevm.rpc.watching.request import Question
from fastevm.simulate import Change
from tests.block_times import UNHURRIED_MS
from tests.max_wait import MAX_WAIT
from tests.rpc.sockets import SocketClient

COUNTER, CLOCK, PAYEE = ("0x" + pair * 20 for pair in ("c0", "c1", "c2"))
# With more than 4 bytes of data: stores the first 32 in slot 0. Otherwise returns the slot.
COUNTER_CODE = "0x60043611600f575f545f5260205ff35b5f355f5500"
CLOCK_CODE = "0x435f5260205ff3"  # returns NUMBER
GET = {"to": COUNTER, "function": "get() returns (uint256)"}


def word(number: int) -> str:
    return f"0x{number:064x}"


class Harness:
    """A node with a server. Tests make its blocks and slices."""

    def __init__(self, node: Node, server: Server, http: aiohttp.ClientSession) -> None:
        self.node = node
        self.server = server
        self.http = http

    async def client(self, dialect: int = 0) -> SocketClient:
        return SocketClient(await self.http.ws_connect(self.server.urls[dialect]))

    async def store(self, client: SocketClient, value: int) -> None:
        """Submits a transaction that sets the counter."""
        sender = "0x" + self.node.accounts[0].address.hex()
        call = {"from": sender, "to": COUNTER, "data": word(value), "gas": "0x20000"}
        await client.result("eth_sendTransaction", call)

    async def mine(self) -> None:
        await asyncio.to_thread(self.node.mine)


async def harness_of(*, mining: Mining = Mining.MANUAL, **limits: Any) -> Harness:
    node = dev_node(mining=mining, block_time_ms=UNHURRIED_MS, slice_interval_ms=50)
    server = server_of(node, "preconf", "geth", limits=Limits(**limits), threads=1)
    await server.start()
    harness = Harness(node, server, aiohttp.ClientSession())
    client = await harness.client()
    await client.result("anvil_setCode", COUNTER, COUNTER_CODE)
    await client.result("anvil_setCode", CLOCK, CLOCK_CODE)
    await harness.mine()
    return harness


async def closed(harness: Harness) -> None:
    await harness.http.close()
    await harness.server.stop()


@pytest.fixture
async def harness() -> AsyncIterator[Harness]:
    made = await harness_of()
    yield made
    await closed(made)


@pytest.fixture
async def slicing() -> AsyncIterator[Harness]:
    made = await harness_of(mining=Mining.CADENCE)
    yield made
    await closed(made)


async def eventually(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(MAX_WAIT):
        while not condition():
            await asyncio.sleep(0.01)


async def watch(client: SocketClient, **given: Any) -> Any:
    """Subscribes and returns the first message."""
    name = await client.subscribe("fastevm_watch", given)
    reported, first = await client.note()
    assert (reported, first["snapshot"], first["sequence"]) == (name, True, 1)
    return first


# --- answers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", [0, 1])
async def test_the_first_message_has_every_answer(harness: Harness, dialect: int) -> None:
    client = await harness.client(dialect)
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


async def test_a_block_sends_the_answers_that_it_changed(harness: Harness) -> None:
    client, caller = await harness.client(), await harness.client()
    await watch(client, calls=[{"to": COUNTER}, {"to": PAYEE}], views=[GET], block="latest")
    await harness.store(caller, 7)
    await harness.mine()
    _, change = await client.note()
    assert (change["sequence"], change["blockNumber"]) == (2, "0x2")
    assert [answer["question"] for answer in change["answers"]] == [0, 2]
    assert change["answers"][1]["value"] == "0x7"
    await harness.mine()
    await client.silence()


async def test_a_question_about_the_block_changes_with_every_block(harness: Harness) -> None:
    client = await harness.client()
    await watch(client, calls=[{"to": CLOCK}], block="latest")
    for number in (2, 3, 4):
        await harness.mine()
        _, change = await client.note()
        assert change["answers"][0]["returnData"] == word(number)


async def test_pending_answers_follow_the_slices(slicing: Harness) -> None:
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


async def test_a_withdrawn_slice_takes_its_answer_back(slicing: Harness) -> None:
    client, caller = await slicing.client(), await slicing.client()
    await watch(client, views=[GET])
    await slicing.store(caller, 9)
    assert (await client.note())[1]["answers"][0]["value"] == "0x9"
    await caller.result("anvil_dropAllTransactions")
    await asyncio.to_thread(slicing.node.producer.stop)
    slicing.node.publish(None)
    _, back = await client.note()
    assert (back["answers"][0]["value"], back["index"]) == ("0x0", None)


async def test_a_reorganisation_sends_the_answers_of_the_new_chain(harness: Harness) -> None:
    client, caller = await harness.client(), await harness.client()
    await watch(client, views=[GET], block="latest")
    await harness.store(caller, 9)
    await harness.mine()
    assert (await client.note())[1]["answers"][0]["value"] == "0x9"
    await caller.result("anvil_reorg", 1, [])
    assert (await client.note())[1]["answers"][0]["value"] == "0x0"


# --- what counts as a change ----------------------------------------------------------------------


async def test_a_threshold_is_reported_when_it_is_crossed(harness: Harness) -> None:
    client, caller = await harness.client(), await harness.client()
    await watch(client, views=[{**GET, "crosses": "0xa"}], block="latest")
    seen = []
    for value in (5, 9, 10, 11, 30, 2, 3):
        await harness.store(caller, value)
        await harness.mine()
        if value in (10, 2):
            seen.append((await client.note())[1]["answers"][0]["value"])
        else:
            await client.silence()
    assert seen == ["0xa", "0x2"]


async def test_gas_counts_from_the_wanted_difference_on(harness: Harness) -> None:
    client, caller = await harness.client(), await harness.client()
    call = {"to": COUNTER, "data": word(1)}  # uses 20,000 gas more if the slot was 0
    await watch(client, calls=[call], changes=["status"], gasBy=hex(10_000), block="latest")
    for value, is_sent in ((5, True), (6, False), (0, True)):
        await harness.store(caller, value)
        await harness.mine()
        if is_sent:
            assert (await client.note())[1]["answers"][0]["question"] == 0
        else:
            await client.silence()


async def test_progress_is_sent_without_changes_if_it_is_wanted(harness: Harness) -> None:
    client = await harness.client()
    await watch(client, calls=[{"to": COUNTER}], block="latest", progress=True)
    await harness.mine()
    _, progress = await client.note()
    assert (progress["blockNumber"], progress["answers"]) == ("0x2", [])


# --- subscriptions --------------------------------------------------------------------------------


async def test_equal_questions_run_once_for_all(harness: Harness) -> None:
    clients = [await harness.client() for _ in range(5)]
    for client in clients:
        await watch(client, calls=[{"to": COUNTER}, {"to": CLOCK}], block="latest")
    gauges = harness.server.hub.watching.gauges()
    assert (gauges["watch_questions"], gauges["watch_distinct_questions"]) == (10, 2)
    assert (gauges["watch_subscriptions"], gauges["watch_ran_total"]) == (5, 2)
    await harness.mine()
    for client in clients:
        assert [answer["question"] for answer in (await client.note())[1]["answers"]] == [1]


@pytest.mark.parametrize("method", ["eth_unsubscribe", "fastevm_unwatch"])
async def test_who_ends_a_watch_hears_no_more(harness: Harness, method: str) -> None:
    client = await harness.client()
    name = await client.subscribe("fastevm_watch", {"calls": [{"to": CLOCK}], "block": "latest"})
    await client.note()
    assert await client.result(method, name) is True
    assert await client.result("eth_unsubscribe", name) is False
    await harness.mine()
    await client.silence()
    gauges = harness.server.hub.watching.gauges
    await eventually(lambda: gauges()["watch_distinct_questions"] == 0)
    assert gauges()["watch_questions"] == 0


async def test_a_connection_that_ends_takes_its_questions_along(harness: Harness) -> None:
    client, other = await harness.client(), await harness.client()
    await watch(client, calls=[{"to": CLOCK}, {"to": PAYEE}], block="latest")
    await watch(other, calls=[{"to": CLOCK}], block="latest")
    await client.socket.close()
    gauges = harness.server.hub.watching.gauges
    await eventually(lambda: gauges()["watch_distinct_questions"] == 1)
    await harness.mine()
    assert (await other.note())[1]["answers"][0]["question"] == 0


async def test_too_many_questions_of_one_address_are_refused() -> None:
    harness = await harness_of(client_watch_questions=3)
    client = await harness.client()
    await watch(client, calls=[{"to": COUNTER}, {"to": PAYEE}], block="latest")
    refused = await client.ask("eth_subscribe", "fastevm_watch", {"calls": [{"to": CLOCK}] * 2})
    assert refused["error"]["code"] == -32005
    assert "limit 3" in refused["error"]["message"]
    assert harness.server.hub.subscriptions == 1
    await watch(client, calls=[{"to": CLOCK}], block="latest")
    await closed(harness)


async def test_questions_that_use_too_much_gas_end_with_a_reason() -> None:
    harness = await harness_of(client_watch_gas=30_000)
    client = await harness.client()
    name = await client.subscribe(
        "fastevm_watch", {"calls": [{"to": COUNTER}, {"to": PAYEE}], "block": "latest"}
    )
    async with asyncio.timeout(MAX_WAIT):
        while "error" not in (message := await client.read())["params"]:
            pass
    assert message["params"]["subscription"] == name
    assert "more than 30000" in message["params"]["error"]["message"]
    await closed(harness)


async def test_an_answer_that_is_too_large_is_replaced_by_an_error(harness: Harness) -> None:
    client = await harness.client()
    zeros = f"0x62{WATCH_ANSWER:06x}5ff3"  # PUSH3 size, PUSH0, RETURN
    await client.result("anvil_setCode", PAYEE, zeros)
    await harness.mine()
    first = await watch(client, calls=[{"to": PAYEE}], views=[GET], block="latest")
    large, usual = first["answers"]
    assert "more than 1048576" in large["error"]
    assert "returnData" not in large
    assert usual["value"] == "0x0"


async def test_answers_of_one_address_that_take_too_much_memory_end_with_a_reason() -> None:
    harness = await harness_of(client_watch_answers_size=1_000)
    client = await harness.client()
    await client.result("anvil_setCode", PAYEE, "0x6104005ff3")  # returns 1,024 bytes
    await client.subscribe("fastevm_watch", {"calls": [{"to": PAYEE}], "block": "latest"})
    async with asyncio.timeout(MAX_WAIT):
        while "error" not in (message := await client.read())["params"]:
            pass
    assert "more than 1000" in message["params"]["error"]["message"]
    await closed(harness)


async def test_an_answer_that_cannot_be_written_leaves_the_others_alone(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def faulty(change: Change, question: Question) -> dict[str, Any]:
        if question.is_view:
            raise OverflowError
        return answer_json(change, question)

    monkeypatch.setattr(service, "answer_json", faulty)
    client = await harness.client()
    first = await watch(client, calls=[{"to": COUNTER}], views=[GET], block="latest")
    assert first["answers"][0]["returnData"] == word(0)
    assert first["answers"][1]["error"] == "the answer cannot be written: OverflowError"


async def test_fixed_point_numbers_are_decimal_text(harness: Harness) -> None:
    client, caller = await harness.client(), await harness.client()
    await harness.store(caller, 15 * 10**17)
    await harness.mine()
    view = {"to": COUNTER, "function": "get() returns (fixed128x18)"}
    first = await watch(client, views=[view], block="latest")
    assert first["answers"][0]["value"] == "1.500000000000000000"


async def test_who_reads_too_slowly_is_informed_and_gets_the_whole_picture() -> None:
    harness = await harness_of(outbound_messages=2)
    client, caller = await harness.client(), await harness.client()
    await watch(client, views=[GET, {"to": CLOCK, "function": "n() returns (uint256)"}],
                block="latest", progress=True)  # fmt: skip
    (subscription,) = harness.server.hub.watching._standing
    outbox = subscription.session.outbox  # type: ignore[attr-defined]
    outbox.messages = 0  # as if the client had read nothing
    await harness.store(caller, 8)
    for _ in range(3):
        await harness.mine()
    await eventually(lambda: harness.server.hub.watching.missed > 0)
    await client.silence()
    outbox.messages = 2
    _, whole = await client.note()
    assert whole["snapshot"] is True
    assert whole["missed"] >= 1
    assert [answer["value"] for answer in whole["answers"]] == ["0x8", whole["blockNumber"]]
    await closed(harness)


async def test_metrics_report_questions_runs_and_hits(harness: Harness) -> None:
    client = await harness.client()
    await watch(client, calls=[{"to": CLOCK}, {"to": COUNTER}], block="latest")
    await harness.mine()
    await client.note()
    async with harness.http.get(harness.server.urls[0] + "/metrics") as response:
        text = await response.text()
    lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")
    assert lines["fastevm_watch_questions"] == "2"
    assert lines["fastevm_watch_ran_total"] == "3"
    assert lines["fastevm_watch_kept_total"] == "1"


async def test_a_wrong_request_is_refused(harness: Harness) -> None:
    client = await harness.client()
    refused = await client.ask("eth_subscribe", "fastevm_watch", {"calls": [], "x": 1})
    assert refused["error"]["code"] == -32602
    assert "unknown member 'x'" in json.dumps(refused)
