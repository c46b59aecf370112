"""The paywall for aiohttp: ``web.Application(middlewares=[payment_middleware(paywall)])``."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final
from urllib.parse import unquote

from aiohttp import StreamReader, web
from aiohttp.abc import AbstractStreamWriter
from multidict import CIMultiDict

from fastevm.payments.arguments import checked
from fastevm.payments.x402.bodies import AnswerBody, BadBody, BodyReader, undecidable
from fastevm.payments.x402.grants import Reply
from fastevm.payments.x402.paywall import Paywall
from fastevm.payments.x402.purchase import Request, joined

BROKEN_ENCODING: Final = re.compile("%(?![0-9a-fA-F]{2})")
COMPUTED: Final = ("content-length", "transfer-encoding")  # recomputed from the body

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@checked
def payment_middleware(paywall: Paywall) -> Any:
    """Returns a middleware that charges for routes. Paid answers are buffered, not streamed."""

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        headers = joined(request.headers.items())
        mounts = _mounts(request)
        seen = Request(
            request.method, request.path, _url(request), headers,
            mounts=mounts, repaired=_repaired(request), target=request.raw_path,
        )  # fmt: skip
        if not paywall.guards(seen):
            return await handler(request)
        try:
            _check_undecoded(request, headers.get("content-encoding", ""))
            body = await _body(request, BodyReader(headers, paywall.longest_request))
        except BadBody as error:
            return _response(error.reply)
        whole = replace(seen, body=body)
        reply = await paywall.handle(whole, lambda: _run(request, handler))
        return _response(reply)

    return middleware


def _url(request: web.Request) -> str:
    """Returns the URL of a request, also if its Host header is no address."""
    try:
        return str(request.url)
    except ValueError:  # UnicodeError is a ValueError, too
        text = f"{request.scheme}://{request.host}{request.raw_path}"
        return text.encode(errors="backslashreplace").decode()


def _repaired(request: web.Request) -> str:
    """Returns the path as the router decodes it, or "" if no percent-encoding is broken.

    The router repairs ``%%433%A9`` to ``%C3%A9``, then decodes that to a letter.
    """
    path = request.raw_path.partition("?")[0]
    return unquote(request.path) if BROKEN_ENCODING.search(path) else ""


def _response(reply: Reply) -> web.Response:
    kept = [header for header in reply.headers if header[0].lower() not in COMPUTED]
    return web.Response(status=reply.status, body=reply.body, headers=CIMultiDict(kept))


def _check_undecoded(request: web.Request, encoding: str) -> None:
    """Raises `BadBody` if aiohttp has decompressed the body.

    aiohttp accepts a truncated gzip body as complete, and waits forever for the end of a truncated
    deflate body. With ``AppRunner(app, auto_decompress=False)`` bodies stay compressed, and
    `BodyReader` checks them.
    """
    if not encoding or not request.body_exists:
        return
    # None: not decompressed. Older versions of aiohttp do not say.
    if getattr(request.content, "total_compressed_bytes", 0) is not None:
        raise undecidable(encoding)


async def _body(request: web.Request, reader: BodyReader) -> bytes:
    """Returns the complete body. Raises `BadBody`.

    The application's ``client_max_size`` does not apply: the limit is the paywall's.
    """
    try:
        async for part in request.content.iter_any():
            reader.add(part)
    except web.RequestPayloadError:
        text = "the body does not have the encoding that its headers declare"
        raise BadBody(400, "invalid_body", text) from None
    body = reader.whole()
    # so that request.post() accepts the body
    request._client_max_size = max(request._client_max_size, len(body))
    # The handler can read the body again, from aiohttp's cache or as a stream.
    request._read_bytes = body
    stream = StreamReader(request.protocol, len(body) + 1, loop=asyncio.get_running_loop())
    stream.feed_data(body)
    stream.feed_eof()
    request._payload = request._cache["content"] = stream
    return body


def _mounts(request: web.Request) -> tuple[str, ...]:
    """Returns the path prefixes of the subapplications that handle a request.

    aiohttp keeps a prefix percent-encoded. The path of a request is decoded once, and a second time
    by `_repaired`.
    """
    found = []
    for app, inner in pairwise(request.match_info.apps):
        for resource in app.router.resources():
            if getattr(resource, "_app", None) is inner:
                encoded = resource.canonical
                found += [encoded, unquote(encoded), unquote(unquote(encoded))]
    return tuple(found)


async def _run(request: web.Request, handler: Handler) -> Reply:
    """Runs the handler and collects its complete answer.

    Raises TypeError for an answer that cannot be collected.
    """
    collector = _Collector()
    writer, request._payload_writer = request._payload_writer, collector
    # aiohttp's hook would send on_response_prepare. The answer gets this signal when it is sent.
    nested = "_prepare_hook" in vars(request)  # a paywall around this one has set it
    object.__setattr__(request, "_prepare_hook", _prepared)
    try:
        try:
            answer = await handler(request)
        except web.HTTPException as raised:
            answer = raised
        if isinstance(answer, web.WebSocketResponse):
            raise TypeError("a paid handler cannot answer with a WebSocket")
        body = answer.body if isinstance(answer, web.Response) else answer
        if isinstance(body, bytes | bytearray | None) and not answer.prepared:
            answer.headers.setdefault("Content-Type", answer.content_type)
            for cookie in answer.cookies.values():
                answer.headers.add("Set-Cookie", cookie.output(header="").strip())
            return Reply(answer.status, list(answer.headers.items()), bytes(body or b""))
        if not answer.prepared:
            answer._compression = False  # the collected answer is not compressed
            await answer.prepare(request)
        await answer.write_eof()
    finally:
        request._payload_writer = writer
        if not nested:
            object.__delattr__(request, "_prepare_hook")
    return collector.reply()


async def _prepared(answer: web.StreamResponse) -> None:
    """Makes aiohttp read a file in parts. sendfile() would send it before the payment.

    aiohttp sets the headers before it calls this function, so the file is not compressed.
    """
    if isinstance(answer, web.FileResponse):
        answer._compression = True


class _Collector(AbstractStreamWriter):
    """Collects an answer from the parts that aiohttp writes."""

    def __init__(self) -> None:
        self._status, self._headers = 0, list[tuple[str, str]]()
        self._body = AnswerBody()

    async def write_headers(self, status_line: str, headers: "CIMultiDict[str]") -> None:
        """Stores status and headers."""
        self._status, self._headers = int(status_line.split(" ", 2)[1]), list(headers.items())

    async def write(self, chunk: bytes | bytearray | memoryview) -> None:
        """Stores a part of the body."""
        self._body.add(chunk)

    async def write_eof(self, chunk: bytes = b"") -> None:
        """Stores the last part of the body."""
        self._body.add(chunk)

    async def drain(self) -> None:
        """Does nothing, because nothing is sent."""

    def enable_chunking(self) -> None:
        """Does nothing, because the length of the collected answer is known."""

    def enable_compression(self, encoding: str = "deflate", strategy: int | None = None) -> None:
        """Raises TypeError."""
        raise TypeError("a paid answer that is written in parts cannot be compressed")

    def reply(self) -> Reply:
        """Returns the answer."""
        return Reply(self._status, self._headers, self._body.whole())
