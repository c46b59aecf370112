"""The paywall for ASGI applications such as Starlette and FastAPI.

    app.add_middleware(PaymentMiddleware, paywall=paywall)

Imports neither Starlette nor FastAPI. Paid answers are buffered until the payment is settled, so
they are not streamed.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import replace
from typing import Any, Final

from fastevm.payments.arguments import checked
from fastevm.payments.x402.bodies import AnswerBody, BadBody, BodyReader
from fastevm.payments.x402.grants import Reply
from fastevm.payments.x402.paywall import Paywall
from fastevm.payments.x402.purchase import Request, joined, quoted

INNER: Final = ("app", "application", "inner", "_app", "wrapped", "__wrapped__")
MOST_LAYERS: Final = 64  # wrapped applications that are searched for a root path
NOT_SOLD: Final = 4402  # close code for a WebSocket on a sold path

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


@checked
class PaymentMiddleware:
    """Charges for the routes of an ASGI application."""

    def __init__(self, app: Application, paywall: Paywall) -> None:
        self.app, self.paywall = app, paywall

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles a connection; free routes and other protocols go directly to the application."""
        request = None
        if scope["type"] in ("http", "websocket"):
            request = _request(scope, _roots(self.app))
        if request is None or not self.paywall.guards(request):
            await self.app(scope, receive, send)
            return
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": NOT_SOLD})
            return
        try:
            body = await _body(receive, BodyReader(request.headers, self.paywall.longest_request))
        except BadBody as error:
            await _send(send, error.reply)
            return
        if body is None:
            return
        whole = replace(request, body=body)
        reply = await self.paywall.handle(whole, lambda: _run(self.app, scope, body))
        await _send(send, reply)


def _roots(app: Any) -> tuple[str, ...]:
    """Returns the root paths that wrapped applications, such as FastAPI, set themselves."""
    found = []
    for _ in range(MOST_LAYERS):
        root = getattr(app, "root_path", "")
        if isinstance(root, str) and root:
            found.append(root)
        app = next(
            (vars(app)[name] for name in INNER if name in getattr(app, "__dict__", ())), None
        )
        if app is None:
            break
    return tuple(found)


def _request(scope: Scope, mounts: tuple[str, ...]) -> Request:
    headers = joined(
        (name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]
    )
    if scope["type"] == "websocket":
        headers["upgrade"] = "websocket"
    host = headers.get("host") or ":".join(str(part) for part in scope.get("server") or ("",))
    query = scope.get("query_string", b"").decode("latin-1")
    path, root = scope["path"], str(scope.get("root_path") or "")
    url = f"{scope.get('scheme', 'http')}://{host}{quoted(path)}" + (f"?{query}" if query else "")
    target = bytes(scope.get("raw_path") or b"").decode("latin-1")
    method = scope.get("method", "GET")
    return Request(method, path, url, headers, root=root, mounts=mounts, target=target)


async def _body(receive: Receive, reader: BodyReader) -> bytes | None:
    """Returns the complete body; None if the client is gone. Raises `BadBody`."""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        reader.add(message.get("body", b""))
        if not message.get("more_body", False):
            return reader.whole()


async def _run(app: Application, scope: Scope, body: bytes) -> Reply:
    """Runs the application and collects its complete answer.

    The application sees no disconnect before its answer is complete, because the answer is stored
    for a payer who repeats the request. Raises RuntimeError for an answer that cannot be collected.
    """
    answer = _Collector()
    asked = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> Message:
        message = next(asked, None)
        if message is not None:
            return message
        await answer.complete.wait()
        return {"type": "http.disconnect"}

    await app(_collectable(scope), receive, answer.send)
    return answer.reply()


class _Collector:
    """Collects the messages of an answer."""

    def __init__(self) -> None:
        self.complete = asyncio.Event()
        self._started: Message | None = None
        self._body = AnswerBody()

    async def send(self, message: Message) -> None:
        """Takes the next message. Raises RuntimeError for a message that cannot be collected."""
        if message["type"] == "http.response.start" and self._started is None:
            self._started = message
        elif message["type"] == "http.response.body" and self._started is not None:
            if not self.complete.is_set():
                self._body.add(message.get("body", b""))
            if not message.get("more_body", False):
                self.complete.set()
        else:
            raise RuntimeError(f"unexpected in a paid answer: {message['type']}")

    def reply(self) -> Reply:
        """Returns the answer. Raises RuntimeError if it is not complete."""
        if self._started is None or not self.complete.is_set():
            raise RuntimeError("the application has not sent a complete answer")
        headers = [(bytes(name).decode("latin-1"), bytes(value).decode("latin-1"))
                   for name, value in self._started.get("headers", ())]  # fmt: skip
        return Reply(self._started["status"], headers, self._body.whole())


def _collectable(scope: Scope) -> Scope:
    """Returns the scope without response extensions, because their messages cannot be collected."""
    extensions = scope.get("extensions")
    if not extensions:
        return scope
    kept = {name: value for name, value in extensions.items()
            if not name.startswith("http.response.")}  # fmt: skip
    return {**scope, "extensions": kept}


async def _send(send: Send, reply: Reply) -> None:
    headers = [(name.lower(), value) for name, value in reply.headers]
    if not any(name == "content-length" for name, _ in headers):
        headers.append(("content-length", str(len(reply.body))))
    encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    await send({"type": "http.response.start", "status": reply.status, "headers": encoded})
    await send({"type": "http.response.body", "body": reply.body})
