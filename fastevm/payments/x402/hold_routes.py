"""HTTP routes for holds: list, capture in parts, void and refund.

    GET  /holds?after=ID            GET  /holds/ID
    POST /holds/ID/capture {"amount": "1000000", "key": "parcel 1"}
    POST /holds/ID/refund  {"amount": "1000000", "key": "return 1"}
    POST /holds/ID/void

Amounts are token units as decimal text. A request that repeats a ``key`` moves no money again.
Status 202 means that the transaction is pending: repeat the request with the same key.
"""

from asyncio import to_thread
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from aiohttp import web

from fastevm.payments.errors import InvalidTerms, NodeUnreachable, PaymentError, UnknownOrder
from fastevm.payments.holds import Hold
from fastevm.payments.movements import Movement, MovementState
from fastevm.payments.orders import LONGEST_ID, Order
from fastevm.payments.states import State
from fastevm.payments.x402.chain_settler import ChainSettler
from fastevm.payments.x402.facilitator import Facilitator
from fastevm.payments.x402.messages import (
    Json,
    Malformed,
    as_number,
    as_object,
    as_text,
    strict_json,
)

PAGE: Final = 100
STATES: Final = (State.AUTHORIZING, State.HELD, State.CAPTURED, State.PAID, State.RELEASED)

Work = Callable[[ChainSettler, Order, Json], Awaitable[Movement]]


class HoldRoutes:
    """The routes for holds. `http.application` checks the bearer token."""

    def __init__(self, facilitator: Facilitator) -> None:
        self.facilitator = facilitator

    def routes(self) -> list[web.AbstractRouteDef]:
        """Returns the routes."""
        return [
            web.get("/holds", self.all),
            web.get("/holds/{id}", self.one),
            web.post("/holds/{id}/capture", partial(self.move, _capture)),
            web.post("/holds/{id}/refund", partial(self.move, _refund)),
            web.post("/holds/{id}/void", partial(self.move, _void)),
        ]

    async def all(self, request: web.Request) -> web.Response:
        """Returns a page of holds, sorted by id."""
        after = request.query.get("after", "")
        found: list[Json] = []
        for settler in self.facilitator.settlers.values():
            page = partial(settler.store.orders, STATES, after=after, limit=PAGE)
            found += [_order(order) for order in await to_thread(page) if order.annex]
        found.sort(key=lambda hold: str(hold["id"]))
        return web.json_response({"holds": found[:PAGE]})

    async def one(self, request: web.Request) -> web.Response:
        """Returns a hold with its payment state in the escrow and its movements (captures, refunds,
        void).
        """
        try:
            settler, order = await self._find(request.match_info["id"])
            hold = await settler.holds.hold(order.id)
            moves = await to_thread(settler.store.movements, order.id)
        except PaymentError as error:
            return _refused(error)
        return web.json_response(
            _shown(hold) | {"movements": [_movement(movement) for movement in moves]}
        )

    async def move(self, work: Work, request: web.Request) -> web.Response:
        """Captures, voids or refunds a hold with ``work``. Returns the state of the movement."""
        try:
            text = await request.read()
            body = as_object(strict_json(text), "body") if text.strip() else {}
            settler, order = await self._find(request.match_info["id"])
            movement = await work(settler, order, body)
        except PaymentError as error:
            return _refused(error)
        status = 202 if movement.state is MovementState.REQUESTED else 200
        if movement.state is MovementState.FAILED:
            status = 409
        return web.json_response(_movement(movement), status=status)

    async def _find(self, order_id: str) -> tuple[ChainSettler, Order]:
        for settler in self.facilitator.settlers.values():
            try:
                return settler, await to_thread(settler.store.order, order_id)
            except UnknownOrder:
                continue
        raise UnknownOrder(f"no hold has the id {order_id!r}")


async def _capture(settler: ChainSettler, order: Order, body: Json) -> Movement:
    fee = as_number(body, "fee") if "fee" in body else 0
    return await settler.holds.capture(order.id, as_number(body, "amount"), key=_key(body), fee=fee)


async def _refund(settler: ChainSettler, order: Order, body: Json) -> Movement:
    return await settler.holds.refund(order.id, as_number(body, "amount"), key=_key(body))


async def _void(settler: ChainSettler, order: Order, body: Json) -> Movement:
    return await settler.holds.void(order.id)


def _key(body: Json) -> str:
    key = as_text(body, "key")
    if not 0 < len(key) <= LONGEST_ID:
        raise Malformed(f"key: expected 1 to {LONGEST_ID} characters")
    return key


def _order(order: Order) -> Json:
    terms = order.authorization.terms
    return {
        "id": order.id,
        "state": order.state.value,
        "payer": terms.payer,
        "token": order.authorization.domain.token,
        "chainId": order.authorization.domain.chain_id,
        "authorized": str(terms.value),
        "createdAt": int(order.created_at),
    }


def _shown(hold: Hold) -> Json:
    info = hold.info
    return _order(hold.order) | {
        "receiver": info.receiver,
        "capturable": str(hold.held.capturable),
        "refundable": str(hold.held.refundable),
        "captureDeadline": info.authorization_expiry,
        "refundDeadline": info.refund_expiry,
    }


def _movement(movement: Movement) -> Json:
    shown: dict[str, Any] = {
        "key": movement.key,
        "kind": movement.kind.value,
        "amount": str(movement.amount),
        "to": movement.recipient,
        "state": movement.state.value,
    }
    if movement.settlement is not None:
        shown["transaction"] = movement.settlement.transaction_hash
    if movement.reason is not None:
        shown["reason"] = movement.reason.value
    return shown


def _refused(error: PaymentError) -> web.Response:
    """Returns the answer to an error.

    Status 400 stands for an invalid request, 404 for an unknown hold, 503 for a node that does not
    answer, 409 for any other refusal.
    """
    status = 409
    if isinstance(error, UnknownOrder):
        status = 404
    elif isinstance(error, Malformed | InvalidTerms):
        status = 400
    elif isinstance(error, NodeUnreachable):
        status = 503
    return web.json_response({"error": str(error)}, status=status)
