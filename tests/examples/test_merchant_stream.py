"""Tests the merchant example's event streams, and how it checks requests."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import ClientResponse, web
from aiohttp.test_utils import TestClient, TestServer

from examples.merchant.requests import BadRequest, add_headers, body_of, guarded
from examples.merchant.stream import QUEUE_LIMIT, Event, Reader, Stream
from fastevm.payments import PaymentError
from tests.max_wait import MAX_WAIT


def order(order_id: str) -> dict[str, Any]:
    return {"id": order_id}


async def read_event(response: ClientResponse) -> Event:
    async with asyncio.timeout(MAX_WAIT):
        while True:
            line = await response.content.readline()
            if line.startswith(b"event: "):
                data = await response.content.readline()
                return line[7:-1].decode(), json.loads(data.removeprefix(b"data: "))


@asynccontextmanager
async def opened(
    stream: Stream, orders: frozenset[str] | None, snapshot: Iterable[Event] = ()
) -> AsyncIterator[ClientResponse]:
    async def shown() -> Iterable[Event]:
        return snapshot

    async def serve(request: web.Request) -> web.StreamResponse:
        return await stream.serve(request, orders, shown)

    app = web.Application()
    app.router.add_get("/", serve)
    async with TestClient(TestServer(app)) as client, client.get("/") as response:
        assert response.headers["Content-Type"] == "text/event-stream"
        yield response
        stream.close()


async def test_a_page_gets_the_snapshot_and_then_what_happens() -> None:
    stream = Stream()
    async with opened(stream, None, [("order", order("1"))]) as response:
        assert await read_event(response) == ("order", order("1"))
        stream.send("slice", {"block": 7})
        stream.send("order", order("2"))
        assert await read_event(response) == ("slice", {"block": 7})
        assert await read_event(response) == ("order", order("2"))


async def test_a_buyer_sees_nobody_elses_orders() -> None:
    stream = Stream()
    async with opened(stream, frozenset("2"), [("slice", {})]) as response:
        await read_event(response)
        stream.send("order", order("1"))
        stream.send("order", order("2"))
        assert await read_event(response) == ("order", order("2"))


async def test_what_happens_while_the_snapshot_is_made_is_not_lost() -> None:
    stream = Stream()

    async def shown() -> Iterable[Event]:
        stream.send("order", order("2"))
        return [("order", order("1"))]

    async def serve(request: web.Request) -> web.StreamResponse:
        return await stream.serve(request, None, shown)

    app = web.Application()
    app.router.add_get("/", serve)
    async with TestClient(TestServer(app)) as client, client.get("/") as response:
        assert [(await read_event(response))[1]["id"] for _ in range(2)] == ["1", "2"]
        stream.close()


def test_a_page_that_lags_is_ended_and_holds_no_more_than_its_queue() -> None:
    reader = Reader(None)
    for number in range(3 * QUEUE_LIMIT):
        reader.offer(("slice", {"block": number}))
    held = [reader.queue.get_nowait() for _ in range(reader.queue.qsize())]
    assert len(held) == QUEUE_LIMIT + 1
    assert held[-1] is None


@pytest.fixture
async def guarded_client() -> AsyncIterator[TestClient[Any, Any]]:
    async def answer(request: web.Request) -> web.Response:
        body = await body_of(request, what=str)
        if body["what"] == "payment":
            raise PaymentError("nothing to capture")
        if body["what"] == "bug":
            raise KeyError("a secret")
        return web.json_response({})

    app = web.Application(middlewares=[guarded])
    app.on_response_prepare.append(add_headers)
    app.router.add_post("/", answer)
    async with TestClient(TestServer(app)) as client:
        yield client


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Type": "application/json"}, 200),
        ({"Content-Type": "text/plain"}, 403),
        ({"Content-Type": "application/json", "Origin": "http://elsewhere.example"}, 403),
        ({"Content-Type": "application/json", "Origin": "null"}, 403),
    ],
)
async def test_other_sites_cannot_press_the_buttons(
    guarded_client: TestClient[Any, Any], headers: dict[str, str], status: int
) -> None:
    response = await guarded_client.post("/", data=b'{"what": "it"}', headers=headers)
    assert response.status == status


async def test_our_own_pages_can(guarded_client: TestClient[Any, Any]) -> None:
    own = str(guarded_client.make_url("/")).rstrip("/")
    response = await guarded_client.post("/", json={"what": "it"}, headers={"Origin": own})
    assert response.status == 200


async def test_names_that_others_point_here_are_refused(
    guarded_client: TestClient[Any, Any],
) -> None:
    for host in ("rebound.example", "192.168.1.5:80", "127.0.0.1.example"):
        headers = {"Host": host, "Origin": f"http://{host}"}
        response = await guarded_client.post("/", json={"what": "it"}, headers=headers)
        assert response.status == 421


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        (b"{", 400, "The request body is not JSON"),
        (b"[]", 400, "The request body is not a JSON object"),
        (b"{}", 400, "What: expected str"),
        (b'{"what": 5}', 400, "What: expected str"),
        (b'{"what": "payment"}', 409, "Nothing to capture"),
        (b'{"what": "bug"}', 500, "Internal error of the shop."),
    ],
)
async def test_refusals_are_sentences_and_tell_no_secrets(
    guarded_client: TestClient[Any, Any], body: bytes, status: int, text: str
) -> None:
    headers = {"Content-Type": "application/json"}
    response = await guarded_client.post("/", data=body, headers=headers)
    assert response.status == status
    assert await response.json() == {"error": text}
    assert "default-src 'none'" in response.headers["Content-Security-Policy"]


async def test_a_body_member_of_the_wrong_kind_is_named() -> None:
    class Request:
        async def json(self) -> Any:
            return {"count": True}

    with pytest.raises(BadRequest, match="count: expected int"):
        await body_of(Request(), count=int)  # type: ignore[arg-type]
