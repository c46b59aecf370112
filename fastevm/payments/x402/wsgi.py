"""The paywall for WSGI applications such as Flask: ``app.wsgi_app = PaymentMiddleware(...)``.

The engine needs an event loop, which runs in a thread: see `LoopThread`. Requests are answered on
the server's threads.
"""

import asyncio
import io
import threading
from asyncio import AbstractEventLoop
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import replace
from http import HTTPStatus
from typing import Any, Final, TypeVar
from wsgiref.util import application_uri

from fastevm.payments.arguments import checked
from fastevm.payments.x402.bodies import AnswerBody, BadBody, BodyReader
from fastevm.payments.x402.grants import Reply
from fastevm.payments.x402.paywall import Paywall
from fastevm.payments.x402.purchase import Request, joined, quoted

PART: Final = 65_536  # bytes; most that is read in one call
UNPREFIXED: Final = ("CONTENT_TYPE", "CONTENT_LENGTH")  # headers without HTTP_ (PEP 3333)
# Headers with an underscore in place of the hyphen, which some servers pass on.
NO_HEADERS: Final = tuple(f"HTTP_{name}" for name in UNPREFIXED)

Environ = dict[str, Any]
StartResponse = Callable[..., Any]
Application = Callable[[Environ, StartResponse], Iterable[bytes]]
Result = TypeVar("Result")


@checked
class LoopThread:
    """An event loop in a thread, for an engine in a program without a loop."""

    def __init__(self) -> None:
        self.loop: AbstractEventLoop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True, name="x402")
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Runs a coroutine on the loop and returns its result."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    def close(self) -> None:
        """Stops the loop and the thread."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


@checked
class PaymentMiddleware:
    """Charges for the routes of a WSGI application; paid answers are not streamed."""

    def __init__(self, app: Application, paywall: Paywall, loop: LoopThread) -> None:
        self.app, self.paywall, self.loop = app, paywall, loop

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Answers a request; free routes go directly to the application."""
        request = _request(environ)
        if not self.paywall.guards(request):
            return self.app(environ, start_response)
        try:
            body = _body(environ, BodyReader(request.headers, self.paywall.longest_request))
        except BadBody as error:
            return _answer(error.reply, request, start_response)
        whole = replace(request, body=body)

        async def run() -> Reply:
            return await asyncio.to_thread(_run, self.app, environ, body)

        reply = self.loop.run(self.paywall.handle(whole, run))
        return _answer(reply, request, start_response)


def _answer(reply: Reply, request: Request, start_response: StartResponse) -> Iterable[bytes]:
    headers = [header for header in reply.headers if header[0].lower() != "content-length"]
    headers.append(("Content-Length", str(len(reply.body))))
    start_response(_status(reply.status), headers)
    return [b"" if request.method == "HEAD" else reply.body]


def _request(environ: Environ) -> Request:
    headers = joined(
        (name.removeprefix("HTTP_").replace("_", "-"), str(value))
        for name, value in environ.items()
        if (name.startswith("HTTP_") and name not in NO_HEADERS) or (name in UNPREFIXED and value)
    )
    root, path = (
        environ.get(name, "").encode("latin-1").decode("utf-8", "replace")
        for name in ("SCRIPT_NAME", "PATH_INFO")
    )
    if root and path and not path.startswith("/"):
        path = "/" + path  # the application reads SCRIPT_NAME and PATH_INFO as separate segments
    path = root + path
    query = environ.get("QUERY_STRING", "")
    base = application_uri({**environ, "SCRIPT_NAME": ""}).rstrip("/")
    url = f"{base}{quoted(path)}" + (f"?{query}" if query else "")
    target = str(environ.get("RAW_URI") or environ.get("REQUEST_URI") or "")
    return Request(environ["REQUEST_METHOD"], path, url, headers, root=root, target=target)


def _body(environ: Environ, reader: BodyReader) -> bytes:
    """Returns the complete body. Raises `BadBody`.

    Without Content-Length, the end of the body is known only if the server terminates its input
    (``wsgi.input_terminated``). A server that does not terminate the input, such as wsgiref, does
    not decode chunked bodies either.
    """
    chunked = "HTTP_TRANSFER_ENCODING" in environ
    if reader.length is None and not environ.get("wsgi.input_terminated"):
        if chunked:
            text = "this server does not decode chunked bodies: send a Content-Length"
            raise BadBody(411, "length_required", text)
        return b""
    source = environ["wsgi.input"]
    while reader.missing and (part := source.read(min(PART, reader.missing))):
        reader.add(part)
    return reader.whole()


def _run(app: Application, environ: Environ, body: bytes) -> Reply:
    """Runs the application and collects its complete answer."""
    started: list[Any] = ["500 Internal Server Error", []]
    written = AnswerBody()

    def start_response(status: str, headers: list[tuple[str, str]], error: Any = None) -> Any:
        started[:] = [status, headers]
        return written.add

    copy = {**environ, "wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body))}
    copy.pop("HTTP_TRANSFER_ENCODING", None)  # the server has decoded the body
    copy.pop("wsgi.file_wrapper", None)  # only the server itself can send its wrapper
    parts = app(copy, start_response)
    try:
        for part in parts:
            written.add(part)
    finally:
        close = getattr(parts, "close", None)
        if close is not None:
            close()
    return Reply(int(started[0].split(" ", 1)[0]), list(started[1]), written.whole())


def _status(code: int) -> str:
    try:
        return f"{code} {HTTPStatus(code).phrase}"
    except ValueError:
        return f"{code} Unknown"
