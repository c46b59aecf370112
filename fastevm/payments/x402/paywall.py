"""Charges for HTTP routes with x402, independent of the web framework.

    paywall = Paywall(engine, {"GET /weather": Sale([requirements], description="The weather")})

A request without payment gets a 402 that clients of both x402 versions understand. With a payment
it gets the answer once the payment is settled. If the result of the payment is not known yet it
gets a 503, never a 402: after a 402 the payer would sign again and pay twice.
"""

import asyncio
import hashlib
import json
import logging
import re
import time
from asyncio import to_thread
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec import Struct

from fastevm.core.primitives.replace import replace
from fastevm.payments.x402 import reasons
from fastevm.payments.x402.auth_capture import dated, dated_as
from fastevm.payments.x402.bodies import LONGEST_REQUEST
from fastevm.payments.x402.facilitator import Engine
from fastevm.payments.x402.grants import Grant, Grants, MemoryGrants, PaymentLocks, Phase, Reply
from fastevm.payments.x402.messages import (
    Malformed,
    Payment,
    Requirements,
    Resource,
    Settled,
    decode_header,
    encode_header,
    payment_required,
)
from fastevm.payments.x402.reasons import Unavailable

log: Final = logging.getLogger(__name__)

HEADERS: Final = {"payment-signature": 2, "x-payment": 1}
RECEIPTS: Final = {2: "PAYMENT-RESPONSE", 1: "X-PAYMENT-RESPONSE"}
MISSING: Final = {2: "PAYMENT-SIGNATURE header is required"}
KEPT: Final = 3_600.0  # seconds; minimum lifetime of a grant
FAILURE: Final = 400  # lowest status of answers that are not charged
# RFC 9110 and RFC 5789. Methods are case-sensitive: "get" is an unknown method, not GET.
METHODS: Final = (
    "CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE",
)  # fmt: skip
ANY: Final = "*"

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, section 5.6.2


@dataclass(frozen=True, slots=True)
class Request:
    """A request as the paywall needs it. Header names are in lower case."""

    method: str
    path: str
    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(default=b"", repr=False)


class Sale(Struct, frozen=True):
    """What a route costs. ``upfront``: the payment is settled before the handler runs.

    Otherwise the handler runs first, its answer is held back until the payment is settled, and an
    answer with status 400 or more is not charged.
    """

    offers: Sequence[Requirements]
    description: str = ""
    mime_type: str = ""
    upfront: bool = False


Price = Sale | Callable[[Request], Awaitable[Sale]]
Run = Callable[[], Awaitable[Reply]]


class Paywall:
    """Charges for routes. ``routes`` maps ``"GET /path"`` or ``"/prefix/*"`` to a sale.

    A route without a method sells all methods. Other standard methods of a sold path are free; an
    unknown method is refused with 405, because many frameworks treat ``get`` as GET. A route may
    name a method of its own, such as ``"QUERY /path"``. CORS preflights need no payment; their
    answers are sent without a body.

    ``resource_url``: the server's public address, such as ``https://api.example``; by default that
    of the request. ``longest_request``: limit of a request's body in bytes; a longer one gets 413.
    """

    def __init__(
        self,
        engine: Engine,
        routes: Mapping[str, Price],
        *,
        grants: Grants | None = None,
        resource_url: str | None = None,
        longest_request: int = LONGEST_REQUEST,
    ) -> None:
        self.engine, self.grants = engine, grants or MemoryGrants()
        self.resource_url, self.longest_request = resource_url, longest_request
        self._routes = [(*_pattern(route), price) for route, price in routes.items()]
        self._locks = PaymentLocks()

    def guards(self, request: Request) -> bool:
        """Whether :meth:`handle` must answer; other requests go directly to the application."""
        if self.price_of(request) is not None or self._refused(request) is not None:
            return True
        return _is_preflight(request) and any(self._sold(request.path))

    def price_of(self, request: Request) -> Price | None:
        """Returns the price of a request; None if it is free or refused."""
        # servers answer HEAD with the handler of GET
        method = "GET" if request.method == "HEAD" else request.method
        for wanted, price in self._sold(request.path):
            if wanted == method or (wanted == ANY and request.method in METHODS):
                return price
        return None

    def _sold(self, path: str) -> Iterator[tuple[str, Price]]:
        """Yields method and price of every route that matches the path."""
        path = re.sub(r"/{2,}", "/", path)
        for method, pattern, price in self._routes:
            if pattern.fullmatch(path):
                yield method, price

    def _refused(self, request: Request) -> Reply | None:
        """Returns the 405 for an unknown method of a sold path."""
        if request.method in METHODS:
            return None
        sold = {method for method, _ in self._sold(request.path)}
        if not sold or request.method in sold:
            return None
        text = f"unknown method {request.method[:20]!r}; methods are case-sensitive"
        allowed = sold - {ANY} | {"OPTIONS"} | ({"HEAD"} if "GET" in sold else set())
        allow = ", ".join(sorted({*allowed, *METHODS} if ANY in sold else allowed))
        headers = [("Allow", allow), ("Cache-Control", "no-store")]
        return _json(405, {"error": "method_not_allowed", "message": text}, headers)

    async def handle(self, request: Request, run: Run) -> Reply:
        """Answers a request; ``run()`` calls the protected handler."""
        refused = self._refused(request)
        if refused is not None:
            return refused
        if _is_preflight(request) and any(self._sold(request.path)):
            answer = await run()
            kept = [header for header in answer.headers if header[0].lower() != "content-length"]
            return Reply(answer.status, kept)
        price = self.price_of(request)
        if price is None:
            return await run()
        sale = price if isinstance(price, Sale) else await price(request)
        try:
            payment = _payment_of(request)
        except Malformed as error:
            return _json(400, {"error": reasons.INVALID_PAYLOAD, "message": str(error)})
        if payment is None:
            return self.required(request, sale, MISSING[2])
        now = int(time.time())
        given = (dated_as(offer, payment, now) for offer in sale.offers)
        offer = next((dated_offer for dated_offer in given if payment.chooses(dated_offer)), None)
        if offer is None:
            return self.required(request, sale, reasons.INVALID_REQUIREMENTS)
        key = key_of(payment, offer)
        await self._locks.acquire(key)
        try:
            return await _Purchase(self, request, sale, payment, offer, key).answer(run)
        except Malformed as error:
            return _json(400, {"error": reasons.INVALID_PAYLOAD, "message": str(error)})
        except Unavailable as error:
            log.warning("a payment could not be processed: %s", error)
            return _later({"error": reasons.SETTLE_ERROR})
        finally:
            self._locks.release(key)

    def required(
        self, request: Request, sale: Sale, error: str, receipt: tuple[str, str] | None = None
    ) -> Reply:
        """Returns the 402 that asks for a payment."""
        url = f"{self.resource_url}{request.path}" if self.resource_url else request.url
        resource = Resource(url=url, description=sale.description, mime_type=sale.mime_type)
        offers = [dated(offer, int(time.time())) for offer in sale.offers]
        header, body = payment_required(offers, resource, error)
        headers = [("PAYMENT-REQUIRED", header), ("Cache-Control", "no-store")]
        return _json(402, body, [*headers, *([receipt] if receipt else [])])


class _Purchase(Struct):
    """A request with a payment."""

    wall: Paywall
    request: Request
    sale: Sale
    payment: Payment
    offer: Requirements
    key: str

    async def answer(self, run: Run) -> Reply:
        grants = self.wall.grants
        made = Grant(self.key, self._fingerprint(), expires=time.time() + self._kept())
        known = await to_thread(grants.add, made)
        grant = known or made
        if grant.request != made.request:
            return self.wall.required(self.request, self.sale, reasons.NONCE_USED)
        if grant.phase is Phase.GIVEN and grant.reply is not None:
            return self._with_receipt(grant.reply, grant.receipt)
        if grant.phase is Phase.BEGUN and grant.reply is None:
            verified = await self.wall.engine.verify(self.payment, self.offer)
            # a known payment may have been settled before this process lost the result
            ours = known is not None and verified.reason == reasons.NONCE_USED
            if not verified.valid and not ours:
                await to_thread(grants.drop, self.key)
                return self.wall.required(self.request, self.sale, verified.reason or "")
        return await self._sell(grant, run)

    async def _sell(self, grant: Grant, run: Run) -> Reply:
        """Settles and runs the handler, in the order that the sale asks for."""
        grants, reply = self.wall.grants, grant.reply
        if reply is None and not self.sale.upfront and grant.phase is Phase.BEGUN:
            reply = await run()
            if reply.status >= FAILURE:
                await to_thread(grants.drop, self.key)
                return reply
            grant = replace(grant, reply=reply)
            await to_thread(grants.put, grant)
        if grant.phase is Phase.BEGUN:
            settled = await self._settled()
            receipt = encode_header(settled.show(self.payment.version))
            if settled.pending:
                return self._with_receipt(_later({"error": settled.reason}), receipt)
            if not settled.success:
                await to_thread(grants.drop, self.key)
                shown = (RECEIPTS[self.payment.version], receipt)
                return self.wall.required(
                    self.request, self.sale, settled.reason or reasons.SETTLE_ERROR, shown
                )
            grant = replace(grant, phase=Phase.PAID, receipt=receipt)
            await to_thread(grants.put, grant)
        reply = reply or await run()
        if reply.status < FAILURE or not self.sale.upfront:
            await to_thread(grants.put, replace(grant, phase=Phase.GIVEN, reply=reply))
        return self._with_receipt(reply, grant.receipt)

    async def _settled(self) -> Settled:
        """Settles; continues even if the client disconnects."""
        task = asyncio.ensure_future(self.wall.engine.settle(self.payment, self.offer))
        return await asyncio.shield(task)

    def _fingerprint(self) -> str:
        request = self.request
        text = f"{request.method} {request.url}\n".encode() + request.body
        return hashlib.sha256(text).hexdigest()

    def _kept(self) -> float:
        return max(KEPT, float(self.offer.max_timeout))

    def _with_receipt(self, reply: Reply, receipt: str) -> Reply:
        name = RECEIPTS[self.payment.version]
        if not receipt:
            return reply
        kept = [header for header in reply.headers if header[0].lower() not in (name.lower(),)]
        has_cache = any(header[0].lower() == "cache-control" for header in kept)
        cache = [] if has_cache else [("Cache-Control", "private")]
        return Reply(reply.status, [*kept, *cache, (name, receipt)], reply.body)


def key_of(payment: Payment, offer: Requirements) -> str:
    """Returns the key of a payment: a hash of chain, token, payer and nonce as bytes.

    Signatures are left out, because a signature can be encoded in several ways.
    """
    chain, token = offer.chain_id.to_bytes(32, "big"), bytes.fromhex(offer.asset[2:])
    return hashlib.sha256(chain + token + payment.payer + payment.nonce).hexdigest()


def _payment_of(request: Request) -> Payment | None:
    for name, version in HEADERS.items():
        text = request.headers.get(name)
        if text is not None:
            payment = Payment.read(decode_header(text))
            if payment.version != version:
                raise Malformed(f"x402Version: expected {version} in the header {name}")
            return payment
    return None


def _is_preflight(request: Request) -> bool:
    """Whether a browser asks which cross-origin requests are allowed; it cannot pay for that."""
    return request.method == "OPTIONS" and "access-control-request-method" in request.headers


def _pattern(route: str) -> tuple[str, re.Pattern[str]]:
    """Returns method and path pattern of ``"GET /path"``, ``"/path"`` or ``"/prefix/*"``.

    A standard method may be written in lower case here.
    """
    method, _, path = route.rpartition(" ")
    if not path.startswith("/"):
        raise ValueError(f"route {route!r}: expected a path, or a method and a path")
    method = method or ANY
    if _TOKEN.fullmatch(method) is None:
        raise ValueError(f"route {route!r}: {method!r} is not an HTTP method")
    method = method.upper() if method.upper() in METHODS else method
    parts = (re.escape(part) for part in path.rstrip("/").split("*"))
    return method, re.compile(".*".join(parts) + "/?", re.DOTALL)


def _json(status: int, body: Mapping[str, Any], headers: Sequence[tuple[str, str]] = ()) -> Reply:
    text = json.dumps(body).encode()
    return Reply(status, [("Content-Type", "application/json"), *headers], text)


def _later(body: Mapping[str, Any]) -> Reply:
    return _json(503, body, [("Retry-After", "1"), ("Cache-Control", "no-store")])
