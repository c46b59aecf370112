"""Charges for HTTP routes with x402, independent of the web framework.

    paywall = Paywall(engine, {"GET /weather": Sale([requirements], description="The weather")})

A request without payment gets a 402 that clients of both x402 versions understand. A request with a
payment gets the answer once the payment is settled. If the result of the payment is not known yet,
the request gets a 503, never a 402: after a 402 the payer would sign again and pay twice.
"""

import asyncio
import logging
import os
import posixpath
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from fastevm.core.primitives.replace import replace
from fastevm.core.primitives.safe_text import cut, safe
from fastevm.core.primitives.suggestion import did_you_mean
from fastevm.payments.arguments import check_members, checked
from fastevm.payments.errors import InvalidTerms, StoreError
from fastevm.payments.x402 import proofs, reasons
from fastevm.payments.x402.auth_capture import dated, dated_as
from fastevm.payments.x402.bodies import LONGEST_REQUEST
from fastevm.payments.x402.facilitator import Engine, Facilitator
from fastevm.payments.x402.grants import Grants, MemoryGrants, PaymentLocks, Reply
from fastevm.payments.x402.messages import (
    AUTH_CAPTURE,
    EXACT,
    Malformed,
    Payment,
    Requirements,
    Resource,
    decode_header,
    payment_required,
)
from fastevm.payments.x402.proofs import DECLARED, IDENTIFIER, split_address
from fastevm.payments.x402.purchase import Purchase, Request, Run, as_json, conflict, key_of, later
from fastevm.payments.x402.reasons import Unavailable
from fastevm.payments.x402.renewal import Renewal

log: Final = logging.getLogger(__name__)

HEADERS: Final = {"payment-signature": 2, "x-payment": 1}
# Headers that may have only one value, which contains no comma. If such a header is repeated,
# servers and applications disagree about which value counts.
ONE_VALUE: Final = (
    "host", "content-length", "transfer-encoding", *HEADERS, proofs.SIGN_IN_HEADER.lower(),
    "access-control-request-method",
)  # fmt: skip
MISSING: Final = {2: "PAYMENT-SIGNATURE header is required"}
# RFC 9110 and RFC 5789. Methods are case-sensitive: "get" is an unknown method, not GET.
METHODS: Final = (
    "CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE",
)  # fmt: skip
ANY: Final = "*"
SCHEMES: Final = (EXACT, AUTH_CAPTURE)
LONGEST_MESSAGE: Final = 500  # characters of a facilitator's message in a 402
# characters that are ignored at the end of a path
IGNORED: Final = "".join(map(chr, range(33))) + "\x7f\x85\xa0\u2028\u2029"

_PREFLIGHT: Final = [
    ("Vary", "Origin, Access-Control-Request-Method"), ("Cache-Control", "no-store")
]  # fmt: skip
_OF_PREFLIGHTS: Final = re.compile(r"access-control-|(?:vary|allow|cache-control)$", re.I)


class Sale(Struct, frozen=True):
    """The price of a route. The payer chooses one of the offers.

    By default the handler runs first, and its answer is sent after the payment is settled. An
    answer with status 400 or more is not charged.

    With ``upfront`` the payment is settled before the handler runs, so every answer is charged,
    also a 404. After an answer with status 500 or more, the handler runs again if the payer repeats
    the request.
    """

    offers: Sequence[Requirements]
    description: str = ""
    mime_type: str = ""
    upfront: bool = False

    def __post_init__(self) -> None:
        check_members(self)
        if not self.offers:
            raise InvalidTerms("offers: expected at least one, or nobody can pay")
        for offer in self.offers:
            _check_offer(offer)


def _check_offer(offer: Requirements) -> None:
    """Raises InvalidTerms for an offer that nobody can pay, or that costs nothing."""
    if offer.amount == 0:
        raise InvalidTerms("offers: amount: expected at least 1 unit; a free route needs no sale")
    if offer.extra.get("assetTransferMethod") not in (None, "eip3009"):
        return  # a transfer method that only other facilitators support, with other members
    for member in ("name", "version"):
        if not isinstance(offer.extra.get(member), str) or not offer.extra[member]:
            raise InvalidTerms(
                f"offers: extra: expected the {member} of the token's EIP-712 domain, which payers"
                " sign: extra={'name': token.domain.name, 'version': token.domain.version}"
            )


Price = Sale | Callable[[Request], Awaitable[Sale]]


_NEVER_IN_PATHS: Final = re.compile(r"[?#%{}\x00-\x1f]")


@checked
class Paywall:
    """Charges for routes. ``routes`` maps ``"GET /path"`` or ``"/prefix/*"`` to a sale.

    The first route that matches counts. A path that frameworks may read in several ways, such as
    ``/cheap/../report``, gets 400 if the readings have different prices. Every request target that
    is not a path gets 400, also of free routes: ``weather``, ``*``, and ``http://host/weather`` if
    the server shows that form. On a sold path, the paywall refuses WebSockets and all other
    upgrades (403), except to ``h2c``, which is the same request over HTTP/2. It also refuses a
    repeated header that may have only one value, such as Host (400). An application may accept
    several spellings of a value (``/reports/07`` for the integer 7): sell a parameterised route as
    a whole (``/reports/*``), not single values of it.

    A route without a method sells all methods. If a route names a method, the other standard
    methods of its path are free. An unknown method is refused with 405, because many frameworks
    treat ``get`` as GET. A route may name a non-standard method, such as ``"QUERY /path"``.

    CORS preflights need no payment. The application answers them, and its answer is sent without a
    body. If a route sells OPTIONS, as a route without a method does, its handler must not run
    unpaid: the paywall then answers preflights itself, without CORS headers. To sell such a route
    to web pages, put the CORS layer in front of the paywall.

    Raises InvalidTerms for a route that no request can match, and for an offer that nobody can pay,
    such as an offer for a chain or token that ``engine`` does not serve. The offers of a price
    function are checked when the function returns them.

    ``resource_url`` is the server's public address, such as ``https://api.example``. By default it
    is taken from the request. ``longest_request`` limits the body of a request, in bytes. A longer
    body gets 413.
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
        for route, price in routes.items():
            for offer in price.offers if isinstance(price, Sale) else ():
                self._check_served(offer, f"routes: route {route!r}")
        self._locks, self._name = PaymentLocks(), secrets.token_hex(8)
        self._renewal = Renewal(self.grants)

    def _check_served(self, offer: Requirements, name: str) -> None:
        """Raises InvalidTerms if the engine reports that it accepts no payment for an offer.

        Does not ask a remote facilitator, because the server may start before the facilitator.
        """
        schemes = getattr(self.engine, "schemes", SCHEMES)
        if offer.scheme not in schemes:
            raise InvalidTerms(
                f"{name}: expected the scheme {' or '.join(schemes)}, found {offer.scheme[:40]!r}"
                f"{did_you_mean(offer.scheme, schemes)}"
            )
        if isinstance(self.engine, Facilitator) and (fault := self.engine.fault_of(offer)):
            raise InvalidTerms(f"{name}: {fault}")

    def guards(self, request: Request) -> bool:
        """Whether :meth:`handle` must answer; other requests go directly to the application."""
        if self.price_of(request) is not None or self._refused(request) is not None:
            return True
        return _is_preflight(request) and any(self._sold(request))

    def price_of(self, request: Request) -> Price | None:
        """Returns the price of a request; None if it is free or refused."""
        prices = self._prices(request)
        return prices[0] if len(prices) == 1 else None

    def _prices(self, request: Request) -> list[Price]:
        """Returns the distinct prices of a request, one for each reading of its path.

        The first route that matches a reading counts.
        """
        # servers answer HEAD with the handler of GET
        method = "GET" if request.method == "HEAD" else request.method
        wanted = (method, ANY) if request.method in METHODS else (method,)
        found: list[Price] = []
        for forms in _spellings(request):
            for sold, pattern, price in self._routes:
                if sold in wanted and any(map(pattern.matches, forms)):
                    if price not in found:
                        found.append(price)
                    break
        return found

    def _sold(self, request: Request) -> Iterator[tuple[str, Price]]:
        """Yields method and price of every route that matches one of the readings of the path."""
        forms = set[str]().union(*_spellings(request))
        for method, pattern, price in self._routes:
            if any(map(pattern.matches, forms)):
                yield method, price

    def _refused(self, request: Request) -> Reply | None:
        """Returns the error for a request that must not reach the application, else None.

        A request target must be a path: servers and mounted applications read anything else in
        different ways. A request of a sold path is refused if the path has several prices, if a
        header with one value is repeated, if the request asks for another protocol, or if its
        method is unknown.
        """
        if any(text and not text.startswith("/") for text in (request.path, request.target)):
            text = "expected a request target that starts with a slash"
            return _refusal(400, "invalid_target", text)
        prices = self._prices(request)
        if len(prices) > 1:
            text = "this path can be read in ways that have different prices"
            return _refusal(400, "ambiguous_path", text)
        if prices and not _keeps_http(request.headers.get("upgrade")):
            text = "WebSockets and other protocols are refused below a sold path:"
            return _refusal(403, "upgrade_not_sold", f"{text} a payment buys one answer")
        repeated = [name for name in ONE_VALUE if "," in request.headers.get(name, "")]
        if repeated and (prices or any(self._sold(request))):
            return _refusal(400, "repeated_header", f"{repeated[0]}: expected one value")
        if request.method in METHODS:
            return None
        sold = {method for method, _ in self._sold(request)}
        if not sold or request.method in sold:
            return None
        text = f"unknown method {request.method[:20]!r}; methods are case-sensitive"
        allowed = sold - {ANY} | {"OPTIONS"} | ({"HEAD"} if "GET" in sold else set())
        allow = ", ".join(sorted({*allowed, *METHODS} if ANY in sold else allowed))
        headers = [("Allow", allow), ("Cache-Control", "no-store")]
        return as_json(405, {"error": "method_not_allowed", "message": text}, headers)

    async def handle(self, request: Request, run: Run) -> Reply:
        """Answers a request; ``run()`` calls the protected handler."""
        refused = self._refused(request)
        if refused is not None:
            return refused
        if _is_preflight(request) and any(self._sold(request)):
            if self.price_of(request) is not None:
                return Reply(200, _PREFLIGHT)  # the handler must not run unpaid
            answer = await run()
            kept = [header for header in answer.headers if _OF_PREFLIGHTS.match(header[0])]
            return Reply(answer.status, kept)
        price = self.price_of(request)
        if price is None:
            return await run()
        sale = price if isinstance(price, Sale) else await self._priced(price, request)
        try:
            payment = _payment_of(request)
        except Malformed as error:
            return as_json(400, {"error": reasons.INVALID_PAYLOAD, "message": str(error)})
        if payment is None:
            return self.required(request, sale, MISSING[2])
        try:
            offer = await self._accepted(sale, payment)
            if offer is None:
                return await self._not_offered(request, sale, payment)
            return await self._sold_to(request, sale, payment, offer, run)
        except Malformed as error:
            return as_json(400, {"error": reasons.INVALID_PAYLOAD, "message": str(error)})
        except (Unavailable, StoreError) as error:  # of the engine, or of the store of grants
            log.warning("a payment could not be processed: %s", error)
            return later({"error": reasons.SETTLE_ERROR})

    async def _priced(self, price: Callable[[Request], Awaitable[Sale]], request: Request) -> Sale:
        """Returns the sale that a price function chose. Raises InvalidTerms if it is invalid."""
        sale = await price(request)
        for offer in sale.offers:
            self._check_served(offer, "the sale of a price function")
        return sale

    async def _accepted(self, sale: Sale, payment: Payment) -> Requirements | None:
        """Returns the offer that the payer chose; None if the sale has no such offer.

        The offer of a payment that was accepted before still counts, although the sale may have
        another price by now: with a 402 the payer would pay twice.
        """
        # a payment of version 1 does not name its token
        named = sale.offers if payment.accepted is None else [payment.accepted]
        for key in {key_of(payment, offer) for offer in named}:
            grant = await asyncio.to_thread(self.grants.get, key)
            if grant is not None and grant.offer is not None:
                return grant.offer
        now = int(time.time())
        given = (dated_as(offer, payment, now) for offer in sale.offers)
        return next((offer for offer in given if payment.chooses(offer)), None)

    async def _not_offered(self, request: Request, sale: Sale, payment: Payment) -> Reply:
        """Returns the 402 for a payment that matches no offer, or a 409 if it was already made.

        If the grant of a payment for an earlier offer is lost, the payment may still be in the
        facilitator's store. After a 402 the payer would pay twice. A payment of version 1 does not
        show its offer.
        """
        message = "the payment chooses none of the offers: take one of them unchanged"
        if payment.accepted is not None:
            verified = await self.engine.verify(payment, payment.accepted)
            if verified.reason in reasons.SPENT:
                text = (
                    "this payment was made for an offer that the seller does not have any more:"
                    " ask the seller before you sign another"
                )
                return conflict(verified.reason, text)
        return self.required(request, sale, reasons.INVALID_REQUIREMENTS, message)

    async def _sold_to(
        self, request: Request, sale: Sale, payment: Payment, offer: Requirements, run: Run
    ) -> Reply:
        """Answers a request whose payment matches an offer.

        Requests with the same payment run one after the other.
        """
        # the offer comes from the grant
        if payment.accepted is not None and not payment.chooses(offer):
            payment = replace(payment, accepted=offer, scheme=offer.scheme)
        key = key_of(payment, offer)
        purchase = Purchase(
            engine=self.engine, grants=self.grants, request=request, url=self.url_of(request),
            payment=payment, offer=offer, upfront=sale.upfront, key=key, holder=self._holder(),
            renewal=self._renewal,
            required=lambda *why: self.required(request, sale, *why),
        )  # fmt: skip
        # While a request holds the lock, callers that do not prove to be the payer are refused
        # immediately instead of waiting for the lock.
        if self._locks.held(key) and (refusal := await purchase.refusal()) is not None:
            return refusal
        await self._locks.acquire(key)
        try:
            return await purchase.answer(run)
        finally:
            self._locks.release(key)

    def _holder(self) -> str:
        """Returns the id under which this process holds grants. Forked processes have other ids."""
        return f"{self._name}-{os.getpid()}"

    def url_of(self, request: Request) -> str:
        """Returns the public address of a request."""
        if self.resource_url is None:
            return request.url
        return self.resource_url.rstrip("/") + split_address(request.url)[1]

    def required(
        self,
        request: Request,
        sale: Sale,
        error: str,
        message: str = "",
        receipt: tuple[str, str] | None = None,
    ) -> Reply:
        """Returns the 402 that asks for a payment.

        Its body is the offer in version 1. If version 1 has no name for the chain, or cannot
        express the offer, the body says where the offer is. ``message`` says why a payment was
        refused.
        """
        url = self.url_of(request)
        resource = Resource(url=url, description=sale.description, mime_type=sale.mime_type)
        offers = [dated(offer, int(time.time())) for offer in sale.offers]
        header, body = payment_required(offers, resource, error, {IDENTIFIER: DECLARED})
        headers = [("PAYMENT-REQUIRED", header), ("Cache-Control", "no-store")]
        text = cut(safe(message), LONGEST_MESSAGE) if message else ""
        if not body:
            where = "the offer is in the header PAYMENT-REQUIRED (x402 version 2)"
            text = f"{text}; {where}" if text else where
            body = {"error": error}
        if text:
            body["message"] = text
        return as_json(402, body, [*headers, *([receipt] if receipt else [])])


def _refusal(status: int, error: str, message: str) -> Reply:
    body = {"error": error, "message": message}
    return as_json(status, body, [("Cache-Control", "no-store")])


def _payment_of(request: Request) -> Payment | None:
    for name, version in HEADERS.items():
        text = request.headers.get(name)
        if text is not None:
            payment = Payment.read(decode_header(text))
            if payment.version != version:
                raise Malformed(f"x402Version: expected {version} in the header {name}")
            return payment
    return None


def _spellings(request: Request) -> set[frozenset[str]]:
    """Returns the readings of a request's path.

    A reading is a set of paths, with and without the prefixes of mounted applications. Frameworks
    ignore a line feed at the end (``$`` of a regular expression matches before it), double slashes,
    and a missing slash at the start. Frameworks that serve files also follow ``.`` and ``..``.
    """
    paths = []
    for read in {request.path, request.repaired or request.path}:
        outer = _collapsed("/" + read)
        paths += [read, outer, posixpath.normpath(outer)]
    found = set()
    for path in paths:
        inside = (_inside(path, root) for root in (request.root, *request.mounts))
        seen = {_collapsed("/" + form.rstrip(IGNORED)) for form in (path, *inside)}
        found |= {frozenset(seen), frozenset(map(posixpath.normpath, seen))}
    return found


def _inside(path: str, root: str) -> str:
    """Returns the path below ``root``, or the path unchanged if it is not below ``root``."""
    root = root.rstrip("/")
    return path[len(root) :] if path == root or path.startswith(root + "/") else path


def _collapsed(path: str) -> str:
    return re.sub(r"/{2,}", "/", path)


def _keeps_http(upgrade: str | None) -> bool:
    """Whether a request with this Upgrade header asks for no other protocol than HTTP.

    Clients such as Java's HttpClient offer ``h2c`` with ordinary requests. Servers ignore the offer
    (RFC 9113 has withdrawn it), or answer the same request over HTTP/2.
    """
    return upgrade is None or {name.strip().lower() for name in upgrade.split(",")} == {"h2c"}


def _is_preflight(request: Request) -> bool:
    """Whether the request is a CORS preflight. Browsers cannot add a payment to a preflight."""
    return request.method == "OPTIONS" and "access-control-request-method" in request.headers


def _pattern(route: str) -> tuple[str, "_PathPattern"]:
    """Returns method and path pattern of ``"GET /path"``, ``"/path"`` or ``"/prefix/*"``.

    The method may be written in lower case here. A mistyped method is refused, because it would
    leave the intended method of the path free.
    """
    method, _, path = route.rpartition(" ")
    if not path.startswith("/"):
        raise InvalidTerms(f"routes: route {route!r}: expected a path, or a method and a path")
    method = method.upper() or ANY
    if method not in (ANY, *METHODS):
        raise InvalidTerms(
            f"routes: route {route!r}: {method!r} is not a standard HTTP method"
            f"{did_you_mean(method, METHODS)}; {path!r} without a method sells all of them"
        )
    if method == "HEAD":
        raise InvalidTerms(f"routes: route {route!r}: servers answer HEAD as GET, so sell GET")
    if found := _NEVER_IN_PATHS.search(path):
        text = "paths are compared decoded and without a query, and * is the only placeholder"
        raise InvalidTerms(f"routes: route {route!r}: {found[0]!r} matches no path: {text}")
    return method, _PathPattern(_collapsed(path))


class _PathPattern:
    """A path in which each ``*`` stands for any text, which may be empty and contain slashes.

    A path may end in one slash more than the pattern. Matching takes linear time, however many
    ``*`` the pattern has: each part between two ``*`` is searched once, after the previous part.
    The first occurrence is always right, because it leaves the most text for the later parts.
    """

    def __init__(self, path: str) -> None:
        self._first, *self._rest = path.rstrip("/").split(ANY)

    def matches(self, path: str) -> bool:
        """Whether the complete path matches."""
        return self._matches(path) or (path.endswith("/") and self._matches(path[:-1]))

    def _matches(self, path: str) -> bool:
        if not self._rest:
            return path == self._first
        *inner, last = self._rest
        if not path.startswith(self._first):
            return False
        at, end = len(self._first), len(path) - len(last)
        for part in inner:
            at = path.find(part, at, end)
            if at < 0:
                return False
            at += len(part)
        return at <= end and path.endswith(last)
