"""Serves the web application: two pages, their API, and their event streams."""

import re
from pathlib import Path
from typing import Final

from aiohttp import web

from examples.merchant.chain import DECIMALS, SYMBOL, Bank
from examples.merchant.demo_wallet import DemoWallet
from examples.merchant.explorer import Explorer
from examples.merchant.requests import BODY_LIMIT, BadRequest, add_headers, body_of, guarded
from examples.merchant.sales import ITEMS, MOST_OF_ONE, Sales
from examples.merchant.stream import Event, Stream

STATIC: Final = Path(__file__).parent / "static"
NAME: Final = "Slow Roast"
MOST_AT_ONCE: Final = 100  # captures per request
MOST_WATCHED: Final = 20  # orders that a buyer's page can follow
DEMO_ACTIONS: Final = {
    "pause": "The token is paused.",
    "unpause": "The token moves again.",
    "block": "The buyers are blocked.",
    "unblock": "The buyers are not blocked any more.",
    "empty": "The buyers have spent their money elsewhere.",
    "fund": "Every buyer got 100 USDC.",
}
ADDRESS: Final = re.compile(r"0x[0-9a-fA-F]{40}")


class Shop:
    """Defines the routes. `Sales` does the work."""

    def __init__(
        self, sales: Sales, bank: Bank, stream: Stream, node_url: str, explorer: Explorer
    ) -> None:
        self.sales = sales
        self.explorer = explorer
        self.bank = bank
        self.stream = stream
        self.node_url = node_url

    def application(self, wallet: DemoWallet) -> web.Application:
        """Returns the aiohttp application of shop and test wallet."""
        app = web.Application(middlewares=[guarded], client_max_size=BODY_LIMIT)
        app.on_response_prepare.append(add_headers)
        app.add_routes([*self.pages(), *self.orders(), *wallet.routes()])
        return app

    def pages(self) -> list[web.AbstractRouteDef]:
        return [
            web.get("/", self.shop_page),
            web.get("/merchant", self.merchant_page),
            web.static("/static", STATIC),
            web.get("/api/shop", self.describe),
            web.get("/api/balance/{address}", self.balance),
            web.get("/tx/{hash}", self.explorer.page),
            web.get("/events", self.buyer_events),
            web.get("/merchant/events", self.merchant_events),
            web.post("/demo/{action}", self.demo),
        ]

    def orders(self) -> list[web.AbstractRouteDef]:
        path = "/api/orders/{id}"
        return [
            web.post("/api/orders", self.place),
            web.post("/api/capture", self.capture_many),
            web.get(f"{path}/authorization", self.authorization),
            web.post(f"{path}/signature", self.sign),
            web.get(f"{path}/cancellation", self.cancellation),
            web.post(f"{path}/cancellation", self.cancel),
            web.post(f"{path}/capture", self.capture),
            web.post(f"{path}/void", self.void),
            web.post(f"{path}/refund", self.refund),
            web.post(f"{path}/ask-cancel", self.ask_cancel),
        ]

    async def shop_page(self, _: web.Request) -> web.FileResponse:
        return web.FileResponse(STATIC / "shop.html")

    async def merchant_page(self, _: web.Request) -> web.FileResponse:
        return web.FileResponse(STATIC / "merchant.html")

    async def describe(self, _: web.Request) -> web.Response:
        """Returns articles, token and chain."""
        chain = {
            "chainId": hex(self.bank.chain_id),
            "chainName": "fastevm development chain",
            "rpcUrls": [self.node_url],
            "nativeCurrency": {"name": "Ether", "symbol": "ETH", "decimals": 18},
        }
        return web.json_response(
            {
                "items": [item._asdict() for item in ITEMS],
                "name": NAME,
                "symbol": SYMBOL,
                "decimals": DECIMALS,
                "mostOfOne": MOST_OF_ONE,
                "chain": chain,
            }
        )

    async def balance(self, request: web.Request) -> web.Response:
        address = request.match_info["address"]
        if not ADDRESS.fullmatch(address):
            raise BadRequest("expected an address")
        return web.json_response({"balance": await self.bank.balance(address)})

    async def place(self, request: web.Request) -> web.Response:
        """Creates an order; the response contains the typed data to sign."""
        body = await body_of(request, item=str, quantity=int, payer=str)
        order_id = await self.sales.place(body["item"], body["quantity"], body["payer"])
        return await self._order(order_id, typedData=await self.sales.authorization(order_id))

    async def authorization(self, request: web.Request) -> web.Response:
        typed = await self.sales.authorization(request.match_info["id"])
        return web.json_response({"typedData": typed})

    async def sign(self, request: web.Request) -> web.Response:
        body = await body_of(request, signature=str)
        await self.sales.sign(request.match_info["id"], body["signature"])
        return await self._order(request.match_info["id"])

    async def cancellation(self, request: web.Request) -> web.Response:
        typed = await self.sales.cancellation(request.match_info["id"])
        return web.json_response({"typedData": typed})

    async def cancel(self, request: web.Request) -> web.Response:
        body = await body_of(request, signature=str)
        await self.sales.cancel(request.match_info["id"], body["signature"])
        return await self._order(request.match_info["id"])

    async def capture(self, request: web.Request) -> web.Response:
        await self.sales.capture(request.match_info["id"])
        return await self._order(request.match_info["id"], message="The capture is submitted.")

    async def capture_many(self, request: web.Request) -> web.Response:
        """Captures several orders independently; reports how many failed."""
        ids = (await body_of(request, orders=list))["orders"]
        if len(ids) > MOST_AT_ONCE or not all(isinstance(order_id, str) for order_id in ids):
            raise BadRequest(f"orders: expected at most {MOST_AT_ONCE} ids")
        done, failed = await self.sales.capture_many(ids)
        text = "1 capture is submitted" if done == 1 else f"{done} captures are submitted"
        text += f", {failed} failed." if failed else "."
        return web.json_response({"message": text})

    async def refund(self, request: web.Request) -> web.Response:
        """Refunds an amount in whole tokens, as decimal text."""
        body = await body_of(request, amount=str)
        await self.sales.refund(request.match_info["id"], body["amount"])
        return await self._order(request.match_info["id"], message="The refund is submitted.")

    async def void(self, request: web.Request) -> web.Response:
        await self.sales.void(request.match_info["id"])
        return await self._order(request.match_info["id"], message="The order is void.")

    async def ask_cancel(self, request: web.Request) -> web.Response:
        await self.sales.ask_cancel(request.match_info["id"])
        text = "The buyer's page now asks for a signed cancellation."
        return await self._order(request.match_info["id"], message=text)

    async def demo(self, request: web.Request) -> web.Response:
        """Simulates a problem, or ends it."""
        action = request.match_info["action"]
        if action not in DEMO_ACTIONS:
            raise BadRequest(f"no such action: {action}")
        await getattr(self.bank, action)()
        return web.json_response({"message": DEMO_ACTIONS[action]})

    async def buyer_events(self, request: web.Request) -> web.StreamResponse:
        """Streams the orders whose ids the buyer's page sends."""
        ids = [order_id for order_id in request.query.get("orders", "").split(",") if order_id]
        if len(ids) > MOST_WATCHED:
            raise BadRequest(f"a page follows at most {MOST_WATCHED} orders")
        wanted = frozenset(ids)
        return await self.stream.serve(request, wanted, lambda: self._snapshot(wanted))

    async def merchant_events(self, request: web.Request) -> web.StreamResponse:
        return await self.stream.serve(request, None, lambda: self._snapshot(None))

    async def _snapshot(self, wanted: frozenset[str] | None) -> list[Event]:
        shown = await self.sales.shown(wanted)
        return [("order", order) for order in shown]

    async def _order(self, order_id: str, **more: object) -> web.Response:
        shown = await self.sales.shown(frozenset((order_id,)))
        return web.json_response({"order": shown[0], **more})
