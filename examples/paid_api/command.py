"""The command line of ``python -m examples.paid_api``."""

import argparse
import asyncio
import json
import logging
import signal
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import aiohttp
from aiohttp import web

from examples.merchant.requests import BadRequest, add_headers, body_of, guarded
from examples.paid_api.town import Town, build
from fastevm.payments import PaymentError, State
from fastevm.payments.x402 import payment_middleware
from fastevm.payments.x402.messages import decode_header

STATIC: Final = Path(__file__).parent / "static"
STYLE: Final = Path(__file__).parents[1] / "merchant" / "static"
SOLD: Final = ("weather", "room")
MOVES: Final = ("capture", "void")


class PaidApi:
    """Serves the page. Buys as the payer; captures and voids as the merchant."""

    def __init__(self, town: Town) -> None:
        self.town, self.url = town, ""

    def routes(self) -> list[web.AbstractRouteDef]:
        """Returns the routes. Routes under /api cost money."""
        return [
            web.get("/", self.page),
            web.get("/api/weather", self.weather),
            web.get("/api/room", self.room),
            web.post("/buy", self.buy),
            web.get("/holds", self.holds),
            web.post("/holds/{id}/{move}", self.move),
            web.static("/static", STATIC),
            web.static("/style", STYLE),
        ]

    async def page(self, _: web.Request) -> web.FileResponse:
        return web.FileResponse(STATIC / "index.html")

    async def weather(self, _: web.Request) -> web.Response:
        return web.json_response({"weather": "sunny", "degrees": 21})

    async def room(self, _: web.Request) -> web.Response:
        return web.json_response({"room": 7, "nights": 1})

    async def buy(self, request: web.Request) -> web.Response:
        """Requests an answer, pays, and requests it again. Returns the messages of each step."""
        what = (await body_of(request, what=str))["what"]
        if what not in SOLD:
            raise BadRequest(f"unknown product {what!r}")
        return web.json_response({"steps": await bought(self.town, f"{self.url}/api/{what}")})

    async def holds(self, _: web.Request) -> web.Response:
        """Returns the holds and their amounts."""
        found = await asyncio.to_thread(self.town.settler.store.orders)
        shown = [await self._hold(order.id) for order in found if order.annex]
        shown.sort(key=lambda hold: -hold["createdAt"])
        return web.json_response({"holds": shown})

    async def move(self, request: web.Request) -> web.Response:
        """Captures a part of a hold, or voids the remaining amount."""
        order_id, move = request.match_info["id"], request.match_info["move"]
        if move not in MOVES:
            raise BadRequest(f"unknown action {move!r}: expected capture or void")
        holds = self.town.settler.holds
        if move == "void":
            await holds.void(order_id)
        else:
            units = self.town.token.units((await body_of(request, amount=str))["amount"])
            done = len(await asyncio.to_thread(self.town.settler.store.movements, order_id))
            await holds.capture(order_id, units, key=f"{order_id}/part/{done}")
        return web.json_response(await self._hold(order_id))

    async def _hold(self, order_id: str) -> dict[str, Any]:
        hold, text = await self.town.settler.holds.hold(order_id), self.town.token.text
        waits = hold.order.state is State.HELD
        return {
            "id": order_id,
            "payer": hold.info.payer,
            "authorized": text(hold.info.max_amount),
            "held": text(hold.held.capturable),
            "captured": text(hold.held.refundable),
            "open": waits and hold.held.capturable > 0,
            "left": f"{hold.held.capturable / 10**self.town.token.decimals:.2f}",
            "createdAt": hold.order.created_at,
        }


async def bought(town: Town, url: str) -> list[dict[str, Any]]:
    """Makes a paid request; returns its three steps as text: 402, signature, answer."""
    async with aiohttp.ClientSession() as session:
        async with session.get(url) as asked:
            body = await asked.read()
            required = decode_header(asked.headers["PAYMENT-REQUIRED"])
        offer = required["accepts"][0]
        price = town.token.text(int(offer["amount"]))
        started = time.perf_counter()
        name, value = town.payer.pay(asked.headers, body)
        signed = time.perf_counter()
        async with session.get(url, headers={name: value}) as answer:
            text, receipt = await answer.text(), answer.headers.get("PAYMENT-RESPONSE")
        done = time.perf_counter()
    settled = decode_header(receipt) if receipt else {}
    return [
        {"title": f"402: it costs {price}", "text": f"{required['resource']['description']}, by"
         f" {offer['scheme']} to {offer['payTo']}", "raw": json.dumps(required, indent=2)},
        {"title": f"Signed in {1000 * (signed - started):.0f} ms", "text": "Nothing has moved yet.",
         "raw": json.dumps(decode_header(value), indent=2)},
        {"title": f"{answer.status} after {1000 * (done - signed):.0f} ms", "text": text,
         "raw": json.dumps(settled, indent=2)},
    ]  # fmt: skip


async def serve(port: int, once: str | None) -> None:
    """Serves until SIGINT or SIGTERM.

    With ``once``, buys one answer, prints the steps, and ends.
    """
    async with AsyncExitStack() as exit_:
        folder = exit_.enter_context(tempfile.TemporaryDirectory(prefix="paid-api-"))
        town = await build(exit_, folder)
        api = PaidApi(town)
        app = web.Application(middlewares=[guarded, payment_middleware(town.paywall)])
        app.on_response_prepare.append(add_headers)
        app.add_routes(api.routes())
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        exit_.push_async_callback(runner.cleanup)
        await web.TCPSite(runner, "127.0.0.1", port).start()
        api.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        print(f"Paid API  {api.url}/", flush=True)
        if once is None:
            stop = asyncio.Event()
            for number in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(number, stop.set)
            await stop.wait()
            return
        for step in await bought(town, f"{api.url}/api/{once}"):
            print(f"{step['title']}\n    {step['text']}")


def main() -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m examples.paid_api", description=__doc__)
    parser.add_argument("--port", type=int, default=8090, help="(%(default)s; 0: any)")
    parser.add_argument("--once", choices=SOLD, help="buy one answer, print the steps, and end")
    options = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    try:
        asyncio.run(serve(options.port, options.once))
    except KeyboardInterrupt:
        pass
    except (OSError, RuntimeError, PaymentError) as error:
        print(f"examples.paid_api: {error}", file=sys.stderr)
        return 1
    return 0
