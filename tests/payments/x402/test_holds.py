"""Tests a hold over HTTP, from the payer's request to the last refund."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from fastevm.payments.x402 import Facilitator, Paywall, Sale, application, payment_middleware
from fastevm.payments.x402.auth_capture import AuthCapture

from .street import PRICE, Served, Street, usdc

BEARER = {"Authorization": "Bearer secret"}
ROOM = 1_000 * PRICE


@asynccontextmanager
async def hotel(town: Street, settler: Any) -> AsyncIterator[tuple[str, aiohttp.ClientSession]]:
    """Runs a hotel that holds the price of a room.

    Returns its URL and a client for the operator.
    """
    facilitator = Facilitator([settler], [AuthCapture()])
    wall = Paywall(facilitator, {"GET /room": Sale([town.hold(settler.account, amount=ROOM)])})

    async def room(request: web.Request) -> web.Response:
        return web.json_response({"room": 7})

    app = web.Application(middlewares=[payment_middleware(wall)])
    app.router.add_get("/room", room)
    async with (
        Served(application(facilitator, "secret")) as service,
        Served(app) as served,
        aiohttp.ClientSession(service.url, headers=BEARER) as session,
    ):
        yield served.url + "/room", session


async def book(town: Street, url: str, session: aiohttp.ClientSession) -> str:
    """Pays for a room as a new payer. Returns the id of the hold."""
    async with aiohttp.ClientSession() as own:
        answer = await town.buyer().get(own, url)
    assert answer.status == 200, answer
    async with session.get("/holds") as listed:
        (hold,) = (await listed.json())["holds"]
    assert hold["authorized"] == str(ROOM) and hold["payer"] == town.payer.address
    return str(hold["id"])


async def post(session: aiohttp.ClientSession, path: str, **body: Any) -> tuple[int, Any]:
    async with session.post(path, json=body) as answer:
        return answer.status, await answer.json()


async def test_a_hold_is_captured_refunded_and_voided_over_http(town: Street) -> None:
    settler = town.settler()
    payer, shop = town.payer.address, town.shop.address
    before = await town.balance(payer), await town.balance(shop)
    async with hotel(town, settler) as (url, session):
        hold_url = f"/holds/{await book(town, url, session)}"
        part = {"amount": str(ROOM * 4 // 10), "key": "night 1"}
        status, first = await post(session, f"{hold_url}/capture", **part)
        assert status == 200 and first["state"] in ("seen", "final"), first
        # Repeating a capture with its key changes nothing. Capturing more than is left is rejected.
        _, again = await post(session, f"{hold_url}/capture", **part)
        assert again["transaction"] == first["transaction"]
        status, body = await post(session, f"{hold_url}/capture", amount="1", key="night 1")
        assert status == 409 and "'night 1' is a part" in body["error"], body
        status, body = await post(session, f"{hold_url}/capture", amount="1", key="x/refund/y")
        assert status == 400 and body["error"].startswith("key: "), body
        status, body = await post(session, f"{hold_url}/capture", amount=str(ROOM), key="night 2")
        assert status == 409, body
        status, body = await post(
            session, f"{hold_url}/capture", amount=str(ROOM * 3 // 10), key="n2"
        )
        assert status == 200, body
        async with session.get(hold_url) as answer:
            body = await answer.json()
        assert (body["capturable"], body["refundable"]) == (
            str(ROOM * 3 // 10),
            str(ROOM * 7 // 10),
        )
        assert {movement["kind"] for movement in body["movements"]} == {"part"}
        # The operator pays refunds from its own token balance.
        refund = {"amount": str(ROOM // 10), "key": "breakfast"}
        status, body = await post(session, f"{hold_url}/refund", **refund)
        assert status == 409, body
        await settler.holds.allow_refunds(usdc(), ROOM)
        status, body = await post(session, f"{hold_url}/refund", **refund)
        assert status == 200, body
        status, body = await post(session, f"{hold_url}/void")
        assert status == 200, body
        status, body = await post(session, f"{hold_url}/capture", amount="1", key="late")
        assert status == 409, body
        await settler.tend()
        async with session.get(hold_url) as answer:
            body = await answer.json()
        assert body["capturable"] == "0" and body["state"] in ("captured", "paid"), body
    assert await town.balance(shop) == before[1] + ROOM * 7 // 10
    assert await town.balance(payer) == before[0] - ROOM * 6 // 10


async def test_a_hold_that_is_voided_whole_is_released(town: Street) -> None:
    settler = town.settler()
    before = await town.balance(town.payer.address)
    async with hotel(town, settler) as (url, session):
        hold_url = f"/holds/{await book(town, url, session)}"
        for _ in range(2):
            status, body = await post(session, f"{hold_url}/void")
            assert status == 200, body
        await settler.tend()
        async with session.get(hold_url) as answer:
            assert (await answer.json())["state"] == "released"
    assert await town.balance(town.payer.address) == before


async def test_another_process_goes_on_with_what_is_held(town: Street) -> None:
    async with hotel(town, town.settler()) as (url, session):
        hold = await book(town, url, session)
    before = await town.balance(town.shop.address)
    async with hotel(town, town.settler()) as (_, session):
        body = await post(session, f"/holds/{hold}/capture", amount=str(ROOM), key="all")
        assert body[0] == 200, body
    assert await town.balance(town.shop.address) == before + ROOM


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/holds/x/capture", {"amount": "1", "key": "k"}, 404),
        ("/holds/{}/capture", {"amount": "1.5", "key": "k"}, 400),
        ("/holds/{}/capture", {"amount": "0", "key": "k"}, 400),
        ("/holds/{}/capture", {"amount": "1"}, 400),
        ("/holds/{}/capture", {"amount": "1", "key": ""}, 400),
    ],
)
async def test_what_is_asked_wrongly_moves_nothing(
    town: Street, path: str, body: Any, status: int
) -> None:
    async with hotel(town, town.settler()) as (url, session):
        hold = await book(town, url, session)
        answered, found = await post(session, path.format(hold), **body)
        assert answered == status
        assert status != 404 or found["error"] == "no hold has the id 'x'"


async def test_without_the_token_nobody_moves_anything(town: Street) -> None:
    async with (
        Served(application(Facilitator([town.settler()], [AuthCapture()]))) as unprotected,
        aiohttp.ClientSession(unprotected.url) as session,
        session.get("/holds") as answer,
    ):
        assert answer.status == 404
