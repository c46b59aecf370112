"""Runs the merchant example on a Base chain, where buyers of a native token sign permits."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from examples.merchant.demo import Demo, Options
from tests.max_wait import MAX_WAIT


@pytest.fixture
async def demo() -> AsyncIterator[Demo]:
    running = Demo(Options(port=0, base=True))
    await running.start()
    yield running
    await running.stop()


class Page:
    """Sends the requests that the shop's page would send."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.session, self.url = session, url

    async def post(self, path: str, **body: Any) -> tuple[int, Any]:
        async with self.session.post(f"{self.url}{path}", json=body) as answer:
            return answer.status, await answer.json()

    async def ordered(self, payer: str) -> str:
        """Orders one bag and signs as the test wallet does. Returns the order's id."""
        body = {"item": "guji", "quantity": 1, "payer": payer}
        status, placed = await self.post("/api/orders", **body)
        assert status == 200, placed
        assert placed["typedData"]["primaryType"] == "Permit"
        wallet = {"account": payer, "typedData": placed["typedData"]}
        _, signed = await self.post("/demo-wallet/sign", **wallet)
        order_id = str(placed["order"]["id"])
        status, stored = await self.post(f"/api/orders/{order_id}/signature", **signed)
        assert status == 200 and stored["order"]["state"] == "stored", stored
        assert stored["order"]["actions"] == ["capture", "void"]
        return order_id


async def test_a_permit_is_captured_and_a_blocked_buyer_says_why(demo: Demo) -> None:
    buyer = demo.people.buyers["Ada"].address
    async with aiohttp.ClientSession() as session:
        page = Page(session, demo.url)
        order_id = await page.ordered(buyer)
        for action, words in (("block", "blocked"), ("pause", "paused")):
            assert (await page.post(f"/demo/{action}"))[0] == 200
            status, refused = await page.post(f"/api/orders/{order_id}/capture")
            assert status == 409 and words in refused["error"]
            assert (await page.post(f"/demo/un{action}"))[0] == 200
        assert (await page.post(f"/api/orders/{order_id}/capture"))[0] == 200
        async with asyncio.timeout(MAX_WAIT):
            while True:
                status, answer = await page.post(f"/api/orders/{order_id}/refund", amount="1.00")
                if status == 200:
                    break
                await asyncio.sleep(0.1)
        assert answer["order"]["state"] == "paid"
