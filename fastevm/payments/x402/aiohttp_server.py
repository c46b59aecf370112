"""The paywall for aiohttp: ``web.Application(middlewares=[payment_middleware(paywall)])``."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from aiohttp import web
from multidict import CIMultiDict

from fastevm.payments.x402.bodies import BadBody, BodyReader
from fastevm.payments.x402.grants import Reply
from fastevm.payments.x402.paywall import Paywall
from fastevm.payments.x402.purchase import Request

COMPUTED: Final = ("content-length", "transfer-encoding")  # recomputed from the body

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def payment_middleware(paywall: Paywall) -> Any:
    """Returns a middleware that charges for routes; paid answers cannot be streamed."""

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        seen = Request(request.method, request.path, str(request.url), headers)
        if not paywall.guards(seen):
            return await handler(request)
        try:
            body = await _body(request, BodyReader(_framing(headers), paywall.longest_request))
        except BadBody as error:
            return _response(error.reply)
        whole = Request(seen.method, seen.path, seen.url, headers, body)
        reply = await paywall.handle(whole, lambda: _run(request, handler))
        return _response(reply)

    return middleware


def _response(reply: Reply) -> web.Response:
    kept = [header for header in reply.headers if header[0].lower() not in COMPUTED]
    return web.Response(status=reply.status, body=reply.body, headers=CIMultiDict(kept))


def _framing(headers: Mapping[str, str]) -> Mapping[str, str]:
    """Returns the headers without the length of a compressed body: aiohttp decompresses it."""
    if "content-encoding" not in headers:
        return headers
    return {name: value for name, value in headers.items() if name != "content-length"}


async def _body(request: web.Request, reader: BodyReader) -> bytes:
    """Returns the complete body. Raises `BadBody`.

    The application's ``client_max_size`` does not apply: the limit is the paywall's.
    """
    async for part in request.content.iter_any():
        reader.add(part)
    # aiohttp's own cache of the body, from which the handler's read(), text() and json() answer
    request._read_bytes = reader.whole()
    return request._read_bytes


async def _run(request: web.Request, handler: Handler) -> Reply:
    """Runs the handler and collects its complete answer."""
    try:
        answer = await handler(request)
    except web.HTTPException as raised:
        answer = raised
    body = answer.body if isinstance(answer, web.Response) else None
    if not isinstance(answer, web.Response) or not isinstance(body, bytes | bytearray | None):
        raise TypeError("a paid handler must return a web.Response with a body of bytes")
    answer.headers.setdefault("Content-Type", answer.content_type)
    return Reply(answer.status, list(answer.headers.items()), bytes(body or b""))
