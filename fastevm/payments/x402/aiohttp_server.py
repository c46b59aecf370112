"""The paywall for aiohttp: ``web.Application(middlewares=[payment_middleware(paywall)])``."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from aiohttp import web
from multidict import CIMultiDict

from fastevm.payments.x402.grants import Reply
from fastevm.payments.x402.paywall import Paywall, Request

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
        body = await request.read()  # aiohttp caches it for the handler
        whole = Request(seen.method, seen.path, seen.url, headers, body)
        reply = await paywall.handle(whole, lambda: _run(request, handler))
        kept = [header for header in reply.headers if header[0].lower() not in COMPUTED]
        return web.Response(status=reply.status, body=reply.body, headers=CIMultiDict(kept))

    return middleware


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
