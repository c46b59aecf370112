"""Tests that published x402 clients can pay for a resource, on a chain with Base Sepolia's id.

``make test`` installs npm's clients if npm is available. ``make ecosystem`` installs the clients
that are large or whose requirements conflict with ours.
"""

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from fastevm.payments.escrow import V1_1, PaymentInfo, held
from fastevm.payments.x402 import Facilitator, Paywall, Sale, payment_middleware
from fastevm.payments.x402.auth_capture import AuthCapture
from fastevm.payments.x402.messages import decode_header
from tests.max_wait import MAX_WAIT
from tests.payments.x402.street import PRICE, Served, Street, street

HERE = Path(__file__).parent
ROOT = HERE.parents[2]

PAYERS: dict[str, tuple[list[str], Path]] = {
    "npm @x402/fetch 2": (["node", "pay_fetch.mjs"], HERE / "node_modules/@x402/fetch"),
    "npm x402-fetch 1": (
        ["node", "legacy/pay_fetch.mjs"], HERE / "legacy/node_modules/x402-fetch",
    ),
    "PyPI x402 2": ([str(ROOT / ".venv-x402/bin/python"), "pay_httpx_v2.py"], ROOT / ".venv-x402"),
    "PyPI x402 1": (
        [str(ROOT / ".venv-x402-v1/bin/python"), "pay_httpx_v1.py"], ROOT / ".venv-x402-v1",
    ),
}  # fmt: skip


async def pay(payer: str, key: bytes, *arguments: str) -> list[dict[str, Any]]:
    """Runs a client's program and returns its output. Skips if the client is not installed."""
    command, installed = PAYERS[payer]
    if not installed.exists() or shutil.which(command[0]) is None:
        pytest.skip(f"{payer} is not installed: make ecosystem")
    environment = {**os.environ, "PAYER_KEY": "0x" + key.hex()}
    program = await asyncio.create_subprocess_exec(
        *command, *arguments, cwd=HERE, env=environment,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        printed, complaint = await asyncio.wait_for(program.communicate(), MAX_WAIT)
    finally:
        if program.returncode is None:
            program.kill()
    assert program.returncode == 0, complaint.decode()
    return [json.loads(line) for line in printed.decode().splitlines()]


@asynccontextmanager
async def shop(town: Street, facilitator: Any, offer: Any = None) -> AsyncIterator[str]:
    """Serves one paid resource. Yields its URL."""

    async def weather(request: web.Request) -> web.Response:
        return web.json_response({"weather": "sunny"})

    sale = Sale([offer or town.offer()], description="The weather", mime_type="application/json")
    wall = Paywall(facilitator, {"GET /weather": sale})
    app = web.Application(middlewares=[payment_middleware(wall)])
    app.router.add_get("/weather", weather)
    async with Served(app) as served:
        yield served.url + "/weather"


@pytest.mark.parametrize("payer", PAYERS)
async def test_a_published_payer_pays_and_gets_its_answer(tmp_path: Path, payer: str) -> None:
    town = await street(tmp_path)
    try:
        before = await town.balance(town.shop.address)
        async with (
            Facilitator([town.settler()]) as facilitator,
            shop(town, facilitator) as url,
        ):
            (reported,) = await pay(payer, bytes(town.payer.key), url)
        assert reported["status"] == 200 and json.loads(reported["body"]) == {"weather": "sunny"}, (
            reported
        )
        receipt = decode_header(reported["receipt"])
        assert receipt["success"] and receipt["payer"] == town.payer.address
        assert await town.balance(town.shop.address) == before + PRICE
    finally:
        await town.close()


async def test_the_published_auth_capture_client_fills_the_escrow(tmp_path: Path) -> None:
    town = await street(tmp_path)
    try:
        settler = town.settler()
        before = await town.balance(town.payer.address)
        async with (
            Facilitator([settler], [AuthCapture()]) as facilitator,
            shop(town, facilitator, town.hold(settler.account)) as url,
        ):
            (reported,) = await pay("npm @x402/fetch 2", bytes(town.payer.key), url, "auth-capture")
        assert reported["status"] == 200, reported
        (order,) = settler.store.orders()
        info = PaymentInfo.from_json(order.annex)
        key = info.hash(town.token.domain.chain_id, V1_1.escrow)
        assert await held(town.client, V1_1.escrow, key) == (True, PRICE, 0)
        assert info.receiver == town.shop.address
        assert await town.balance(town.payer.address) == before - PRICE
    finally:
        await town.close()
