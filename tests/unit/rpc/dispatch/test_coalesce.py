"""Tests that calls of one loop iteration are predecoded together, and that each call runs once."""

import asyncio
import json

import pytest

from fastevm.errors import InvalidTransaction
from fastevm.rpc.dispatch.coalesce import GROUP
from tests.max_wait import MAX_WAIT
from tests.unit.rpc.conftest import MakeCaller
from tests.unit.rpc.fakes import FakeNode, chain_of

SEND = "eth_sendRawTransaction"


@pytest.fixture
def node() -> FakeNode:
    return FakeNode(chain_of(3), submission=bytes(32))


def call(number: int, *params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": number, "method": SEND, "params": params}


async def test_calls_of_one_turn_of_the_loop_are_predecoded_and_made_in_order(
    make_caller: MakeCaller, node: FakeNode
) -> None:
    caller = make_caller(node)
    answers = await asyncio.gather(*(caller.ask(SEND, f"0x{i + 64:02x}") for i in range(GROUP + 2)))
    sent = [bytes([i + 64]) for i in range(GROUP + 2)]
    assert node.predecoded == [sent[:GROUP], sent[GROUP:]] and node.submitted == sent
    assert [answer["result"] for answer in answers] == ["0x" + "00" * 32] * (GROUP + 2)


async def test_one_call_alone_is_not_predecoded(make_caller: MakeCaller, node: FakeNode) -> None:
    assert await make_caller(node).result(SEND, "0x01") == "0x" + "00" * 32
    assert node.predecoded == [] and node.submitted == [b"\x01"]


async def test_a_batch_predecodes_its_calls_in_groups(
    make_caller: MakeCaller, node: FakeNode
) -> None:
    calls = [call(i, f"0x{i + 64:02x}") for i in range(GROUP + 3)]
    answers = await make_caller(node).send(json.dumps(calls))
    assert [len(group) for group in node.predecoded] == [GROUP, 3]
    assert len(node.submitted) == GROUP + 3
    assert [answer["id"] for answer in answers] == list(range(GROUP + 3))


async def test_a_batch_for_a_worker_is_predecoded_there(
    make_caller: MakeCaller, node: FakeNode
) -> None:
    node.submits_at_once = False
    await make_caller(node).send(json.dumps([call(i, f"0x{i:02x}") for i in range(5)]))
    assert node.predecoded == [node.submitted] and len(node.submitted) == 5


async def test_bad_calls_among_good_ones_get_their_own_answers(
    make_caller: MakeCaller, node: FakeNode
) -> None:
    caller = make_caller(node)
    wrong = [caller.ask(SEND, *params) for params in ((), ("0x0",), (5,), ("0x01", 2))]
    answers = await asyncio.gather(caller.ask(SEND, "0x02"), *wrong)
    assert "result" in answers[0]
    assert [answer["error"]["code"] for answer in answers[1:]] == [-32602] * 4
    node.submission = InvalidTransaction("already_known", "already known")
    refused = await asyncio.gather(*(caller.error(SEND, "0x03") for _ in range(2)))
    assert {message for _, message in refused} == {"already known"}


async def test_who_leaves_at_once_has_sent_all_the_same(
    make_caller: MakeCaller, node: FakeNode
) -> None:
    caller = make_caller(node)
    waiting = asyncio.ensure_future(caller.ask(SEND, "0x07"))
    await asyncio.sleep(0)
    waiting.cancel()
    async with asyncio.timeout(MAX_WAIT):
        while not node.submitted:
            await asyncio.sleep(0.01)
    assert node.submitted == [b"\x07"]


async def test_calls_that_a_worker_makes_are_answered_too(
    make_caller: MakeCaller, node: FakeNode
) -> None:
    large = "0x" + "01" * 10_000
    caller = make_caller(node)
    answers = list(await asyncio.gather(caller.result(SEND, large), caller.result(SEND, "0x02")))
    assert answers == ["0x" + "00" * 32] * 2
    assert sorted(map(len, node.submitted)) == [1, 10_000]
