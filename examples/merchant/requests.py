"""Checks requests: accepts JSON bodies only from the shop's own pages. Returns errors as JSON."""

import ipaddress
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from aiohttp import web

from examples.merchant.words import REASONS
from fastevm.payments import (
    CaptureRefused,
    InvalidTerms,
    NodeUnreachable,
    PaymentError,
    SignatureRefused,
    UnknownOrder,
)

log: Final = logging.getLogger(__name__)

BODY_LIMIT: Final = 64 * 1024  # bytes; the longest bodies contain a contract wallet's signature
HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
        " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class BadRequest(Exception):
    """An invalid request; the page shows the text to the user."""


async def body_of(request: web.Request, **members: type) -> dict[str, Any]:
    """Parses a JSON body with members of these types.

    Raises BadRequest, which names the wrong member.
    """
    try:
        body = await request.json()
    except (ValueError, UnicodeDecodeError):
        raise BadRequest("the request body is not JSON") from None
    if not isinstance(body, dict):
        raise BadRequest("the request body is not a JSON object")
    for name, kind in members.items():
        value = body.get(name)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise BadRequest(f"{name}: expected {kind.__name__}")
    return body


def ours(request: web.Request) -> bool:
    """Returns whether a POST request comes from the shop's own pages.

    Browsers send Origin with every POST, and send JSON to another site only after a preflight.
    """
    origin = request.headers.get("Origin")
    if origin is not None and origin != f"{request.scheme}://{request.host}":
        return False
    return request.content_type == "application/json"


def is_loopback(host: str) -> bool:
    """Returns whether a host name or address is a loopback address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@web.middleware
async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuses requests of other sites, and returns errors as JSON that the page can show."""
    # Against DNS rebinding: a foreign name that resolves to this machine would pass as same origin.
    if not is_loopback(request.url.host or ""):
        return refusal(421, "The shop is served under this machine's own address only.")
    if request.method == "POST" and not ours(request):
        return refusal(403, "This request does not come from the shop's own page.")
    try:
        return await handler(request)
    except (BadRequest, InvalidTerms) as error:
        return refusal(400, str(error))
    except UnknownOrder:
        return refusal(404, "No order has this id.")
    except (SignatureRefused, CaptureRefused) as error:
        return refusal(409, words_of_refusal(error))
    except NodeUnreachable:
        return refusal(503, "The node does not answer. Please try again; nothing is lost.")
    except PaymentError as error:
        return refusal(409, str(error))
    except web.HTTPException as error:
        if error.status < 400:
            raise
        return refusal(error.status, error.text or error.reason)
    except Exception:
        log.exception("%s %s", request.method, request.path)
        return refusal(500, "Internal error of the shop.")


def words_of_refusal(error: SignatureRefused | CaptureRefused) -> str:
    """Returns a sentence that says why a signature or capture was refused."""
    if isinstance(error, SignatureRefused):
        return f"This signature is refused: {REASONS[error.reason]}."
    reason = error.report.reason
    return f"Nothing was submitted: {REASONS[reason]}."


def refusal(status: int, text: str) -> web.Response:
    sentence = text[:1].upper() + text[1:]
    return web.Response(
        status=status, text=json.dumps({"error": sentence}), content_type="application/json"
    )


async def add_headers(_: web.Request, response: web.StreamResponse) -> None:
    """Adds security headers to every response: pages load nothing from other sites."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
