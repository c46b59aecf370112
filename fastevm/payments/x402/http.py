"""A facilitator over HTTP: /verify, /settle, /supported, /discovery/resources, /health, /holds.

If a bearer token is set, every request but /health must send it. If none is set, /holds does not
exist.

A caller that repeats /settle with the ``Idempotency-Key`` of its first request gets the same
result. Without this header, a success is returned only once.

A refused payment is answered with status 200, a malformed message with 400. Status 503 means that
the result is unknown: the client must repeat the request and not treat the payment as failed.
"""

import hmac
import logging
import re
from collections.abc import Awaitable, Callable
from typing import Any, Final

from aiohttp import web

from fastevm.payments.arguments import checked
from fastevm.payments.errors import InvalidTerms
from fastevm.payments.x402 import reasons
from fastevm.payments.x402.facilitator import Facilitator
from fastevm.payments.x402.hold_routes import HoldRoutes
from fastevm.payments.x402.messages import (
    LONGEST_BODY,
    Json,
    Malformed,
    Payment,
    Requirements,
    Settled,
    Verified,
    as_number,
    as_object,
    strict_json,
)
from fastevm.payments.x402.reasons import Unavailable

log: Final = logging.getLogger(__name__)

RETRY_SECONDS: Final = 1  # value of Retry-After
LONGEST_TOKEN: Final = 4_096  # characters of the bearer token
_TOKEN: Final = re.compile(rf"[!-~]{{1,{LONGEST_TOKEN}}}")
UNAUTHORIZED: Final = {"WWW-Authenticate": "Bearer", "Cache-Control": "no-store"}
LONGEST_CLAIM: Final = 255  # characters of an Idempotency-Key
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@checked
def application(facilitator: Facilitator, token: str | None = None) -> web.Application:
    """Returns the web application. ``token`` is the bearer token that callers must send, if any.

    Raises InvalidTerms for a token that is empty or that no header can contain.
    """
    if token is not None:
        check_token(token)
    host = _Host(facilitator)
    app = web.Application(client_max_size=LONGEST_BODY, middlewares=[_guard(token)])
    app.add_routes(
        [
            web.post("/verify", host.verify),
            web.post("/settle", host.settle),
            web.get("/supported", host.supported),
            web.get("/discovery/resources", host.resources),
            web.get("/health", host.health),
        ]
    )
    if token is not None:
        app.add_routes(HoldRoutes(facilitator).routes())
    app.cleanup_ctx.append(host.tended)
    return app


def check_token(token: str, name: str = "token") -> None:
    """Raises InvalidTerms unless the token is one ASCII word. The text does not show the token.

    The text contains ``name``, the name of the argument or variable.
    """
    if not token:
        raise InvalidTerms(f"{name} is empty, so anybody could send it")
    if _TOKEN.fullmatch(token) is None:
        text = f"1 to {LONGEST_TOKEN} printable ASCII characters without spaces"
        raise InvalidTerms(f"{name}: expected {text}, as a header can contain them")


def _guard(token: str | None) -> Any:
    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        if token is not None and request.path != "/health":
            header = request.headers.get("Authorization", "")
            # aiohttp decodes bytes that are not UTF-8 to surrogates
            sent = header.encode("utf-8", "surrogateescape")
            if not hmac.compare_digest(sent, f"Bearer {token}".encode()):
                text = (
                    "expected the header Authorization: Bearer TOKEN, with the token of this server"
                )
                refusal = {"error": "unauthorized", "message": text}
                return web.json_response(refusal, status=401, headers=UNAUTHORIZED)
        return await handler(request)

    return guard


class _Host:
    def __init__(self, facilitator: Facilitator) -> None:
        self.facilitator = facilitator

    async def tended(self, app: web.Application) -> Any:
        async with self.facilitator:
            yield

    async def verify(self, request: web.Request) -> web.Response:
        try:
            _, payment, offer = await _read(request)
            answer, status = await self.facilitator.verify(payment, offer), 200
        except Malformed as error:
            answer, status = _refused(reasons.INVALID_PAYLOAD, str(error)), 400
        except Unavailable as error:
            log.warning("verification failed: %s", error)
            answer, status = _refused(reasons.VERIFY_ERROR, str(error)), 503
        return _answer(answer.show(), status)

    async def settle(self, request: web.Request) -> web.Response:
        version = 2
        try:
            claim = _claim(request)
            version, payment, offer = await _read(request)
            answer, status = await self.facilitator.settle(payment, offer, claim), 200
        except Malformed as error:
            answer, status = _unsettled(reasons.INVALID_PAYLOAD, str(error)), 400
        except Unavailable as error:
            log.warning("settlement failed: %s", error)
            answer, status = _unsettled(reasons.SETTLE_ERROR, str(error)), 503
        return _answer(answer.show(version), status)

    async def supported(self, request: web.Request) -> web.Response:
        return _answer(self.facilitator.supported(), 200)

    async def resources(self, request: web.Request) -> web.Response:
        try:
            query = {"limit": "20", "offset": "0", **request.query}
            limit, offset = as_number(query, "limit"), as_number(query, "offset")
            page = self.facilitator.resources(request.query.get("type"), limit, offset)
        except Malformed as error:
            return _answer({"error": str(error)}, 400)
        return _answer(page, 200)

    async def health(self, request: web.Request) -> web.Response:
        chains = {}
        for chain_id, settler in self.facilitator.settlers.items():
            try:
                funds = int(
                    (await settler.ask([("eth_getBalance", [settler.account, "latest"])]))[0], 16
                )
                chains[str(chain_id)] = {"account": settler.account, "funds": str(funds)}
            except (Unavailable, TypeError, ValueError):
                chains[str(chain_id)] = {"account": settler.account, "error": "no answer"}
        healthy = all("error" not in chain for chain in chains.values())
        return _answer({"healthy": healthy, "chains": chains}, 200 if healthy else 503)


def _claim(request: web.Request) -> str:
    """Returns the caller's key for its settlement, or "". Raises Malformed."""
    claim = request.headers.get("Idempotency-Key", "")
    if len(claim) > LONGEST_CLAIM or not (claim.isascii() and claim.isprintable()):
        raise Malformed(f"Idempotency-Key: expected 1 to {LONGEST_CLAIM} ASCII characters")
    return claim


async def _read(request: web.Request) -> tuple[int, Payment, Requirements]:
    try:
        body = await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise Malformed(f"the body exceeds {LONGEST_BODY} bytes") from None
    message = as_object(strict_json(body), "body")
    payment = Payment.read(message.get("paymentPayload"))
    version = as_number(message, "x402Version") if "x402Version" in message else payment.version
    if version != payment.version:
        raise Malformed("x402Version: the body and its payload differ")
    return version, payment, Requirements.read(message.get("paymentRequirements"), version)


def _refused(reason: str, message: str) -> Verified:
    return Verified(payer=None, reason=reason, message=message)


def _unsettled(reason: str, message: str) -> Settled:
    return Settled(chain_id=0, reason=reason, message=message)


def _answer(body: Json, status: int) -> web.Response:
    headers = {"Cache-Control": "no-store"}
    if status == 503:
        headers["Retry-After"] = str(RETRY_SECONDS)
    return web.json_response(body, status=status, headers=headers)
