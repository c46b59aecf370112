"""The paywall for ASGI applications such as Starlette and FastAPI; imports none of them.

    app.add_middleware(PaymentMiddleware, paywall=paywall)

Paid answers are buffered until the payment is settled, so they are not streamed.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import replace
from typing import Any

from fastevm.payments.x402.bodies import BadBody, BodyReader
from fastevm.payments.x402.grants import Reply
from fastevm.payments.x402.paywall import Paywall
from fastevm.payments.x402.purchase import Request, quoted

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class PaymentMiddleware:
    """Charges for the routes of an ASGI application."""

    def __init__(self, app: Application, paywall: Paywall) -> None:
        self.app, self.paywall = app, paywall

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles a connection; free routes and other protocols go directly to the application."""
        request = None
        if scope["type"] == "http":
            root = scope.get("root_path") or getattr(self.app, "root_path", "")
            request = _request(scope, str(root))
        if request is None or not self.paywall.guards(request):
            await self.app(scope, receive, send)
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


def _request(scope: Scope, root: str) -> Request:
    headers = {name.decode("latin-1").lower(): value.decode("latin-1")
               for name, value in scope["headers"]}  # fmt: skip
    host = headers.get("host") or ":".join(str(part) for part in scope.get("server") or ("",))
    query = scope.get("query_string", b"").decode("latin-1")
    path = scope["path"]
    url = f"{scope.get('scheme', 'http')}://{host}{quoted(path)}" + (f"?{query}" if query else "")
    return Request(scope["method"], path, url, headers, root=root)


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
    """Runs the application and collects its complete answer."""
    started: Message = {"status": 500, "headers": []}
    parts: list[bytes] = []
    asked = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> Message:
        return next(asked, {"type": "http.disconnect"})

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            started.update(message)
        elif message["type"] == "http.response.body":
            parts.append(message.get("body", b""))

    await app(scope, receive, send)
    headers = [(name.decode("latin-1"), value.decode("latin-1"))
               for name, value in started["headers"]]  # fmt: skip
    return Reply(started["status"], headers, b"".join(parts))


async def _send(send: Send, reply: Reply) -> None:
    headers = [(name.lower(), value) for name, value in reply.headers]
    if not any(name == "content-length" for name, _ in headers):
        headers.append(("content-length", str(len(reply.body))))
    encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    await send({"type": "http.response.start", "status": reply.status, "headers": encoded})
    await send({"type": "http.response.body", "body": reply.body})
