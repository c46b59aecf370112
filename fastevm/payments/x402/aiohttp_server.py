"""The paywall for aiohttp: ``web.Application(middlewares=[payment_middleware(paywall)])``."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

from aiohttp import StreamReader, web
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
        root = _mounted_at(request)
        seen = Request(request.method, request.path, str(request.url), headers, root=root)
        if not paywall.guards(seen):
            return await handler(request)
        try:
            body = await _body(request, BodyReader(_framing(headers), paywall.longest_request))
        except BadBody as error:
            return _response(error.reply)
        whole = replace(seen, body=body)
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
    body = reader.whole()
    # The handler reads it again, in whichever way: from aiohttp's cache or as a stream.
    request._read_bytes = body
    stream = StreamReader(request.protocol, len(body) + 1, loop=asyncio.get_running_loop())
    stream.feed_data(body)
    stream.feed_eof()
    request._payload = request._cache["content"] = stream
    return body


def _mounted_at(request: web.Request) -> str:
    """Returns the prefix below which the innermost application of a request is mounted."""
    prefix = ""
    for app, inner in pairwise(request.match_info.apps):
        for resource in app.router.resources():
            if getattr(resource, "_app", None) is inner:
                prefix = resource.canonical
    return prefix


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
