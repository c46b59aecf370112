"""JSON-RPC 2.0 messages of a client, and the two exceptions of a failed call."""

import json
import re
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from fastevm.core.primitives.decompression import decompressed
from fastevm.errors import FastevmError
from fastevm.rpc_client.large_json import decode

MAX_ANSWER_BYTES: Final = 64 * 1024 * 1024
REQUEST_SECONDS: Final = 10.0
MOST_INTERIM_HEADS: Final = 16  # heads with status 1xx before the head of an answer
HEAD_BYTES: Final = 64 * 1024  # most bytes of all heads before the body of an answer
TOO_MANY_HEADS: Final = f"more than {MOST_INTERIM_HEADS} interim heads"
CONTENT_TYPE: Final = {"Content-Type": "application/json"}
METHOD_NOT_FOUND: Final = -32601

Call = tuple[str, Sequence[Any]]  # method and parameters
Request = dict[str, Any]


class RpcUnreachable(FastevmError):
    """No JSON-RPC answer came in time. It is unknown whether the node acted on the request.

    ``status`` is the HTTP status if that was the reason.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class AnswerTooLarge(RpcUnreachable):
    """The answer is longer than the client's limit."""


class RpcRefusal(FastevmError):
    """The node answered with an error.

    Has its ``code``, ``message`` and ``data`` (None without data).
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


Answer = Any  # a result or an RpcRefusal


def request_of(method: str, params: Sequence[Any] = (), number: int = 1) -> Request:
    """Returns a request object. ``number`` is its id."""
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": list(params)}


def body_of(request: Request | Sequence[Request]) -> bytes:
    """Returns the compact JSON of one request or of a batch."""
    return json.dumps(request, separators=(",", ":")).encode()


def request_body(method: str, params: Sequence[Any] = (), number: int = 1) -> bytes:
    """Returns the compact JSON of one request."""
    return body_of(request_of(method, params, number))


def unpacked_body(body: bytes, encoding: str, accepted: bool, max_answer: int) -> bytes:
    """Returns the body of an answer, decoded as its ``Content-Encoding`` says.

    ``accepted``: whether the client requested gzip. Raises `TooLarge` if the decompressed body has
    more than ``max_answer`` bytes. Raises ValueError for invalid data, and for an encoding that the
    client did not request.
    """
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return body
    if name not in ("gzip", "x-gzip") or not accepted:
        raise ValueError("the answer is compressed, which was not requested")
    return decompressed(body, max_answer)


def answers_in(body: bytes | str, requests: Sequence[Request]) -> list[Answer]:
    """Returns an answer for each request, in order. Raises RpcUnreachable if one is missing."""
    try:
        value = decode(body)
    except (ValueError, RecursionError):
        raise RpcUnreachable("the answer is not JSON") from None
    found = value if isinstance(value, list) else [value]
    by_id = responses_by_id(found)
    return [answer_of(request, by_id.get(request["id"])) for request in requests]


def responses_by_id(found: Sequence[Any]) -> dict[int | str | None, Request]:
    """Returns the response objects of a batch by id. Skips items without a valid id."""
    return {item.get("id"): item for item in found if _has_hashable_id(item)}


def answer_of(request: Request, response: Request | None) -> Answer:
    """Returns a response's result, or its error as RpcRefusal. Raises RpcUnreachable for None."""
    if response is None:
        raise RpcUnreachable(f"{request['method']}: no response with its id")
    error = response.get("error")
    if error is None:
        return response.get("result")
    if not isinstance(error, dict):
        return RpcRefusal(0, "")
    code = error.get("code", 0)
    number = code if isinstance(code, int) else 0
    return RpcRefusal(number, str(error.get("message", "")), error.get("data"))


def result_of(answer: Answer) -> Any:
    """Returns ``answer`` if it is a result. Raises ``answer`` if it is an RpcRefusal."""
    if isinstance(answer, RpcRefusal):
        raise answer
    return answer


_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def shown_address(url: str) -> str:
    """Returns a URL without user, path and query, which may contain keys and passwords.

    Returns only the scheme if the URL cannot be parsed, or if the part that looks like the host may
    be a password.
    """
    scheme = url.partition("://")[0] if _SCHEME.match(url) else ""
    hidden = f"{scheme.lower()}://***" if scheme else "***"
    parts = _parts_of(url)
    # "user:pass/word@host": urlsplit takes "user:pass" for the host
    if parts is None or not scheme or not parts.netloc:
        return hidden
    if "@" in url.partition(parts.netloc)[2]:
        return hidden
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.hostname or ''}{port}"


def checked_address(url: str, *schemes: str) -> str:
    """Returns ``url``.

    Raises ValueError if its scheme is not in ``schemes`` or if it has no host.
    """
    parts = _parts_of(url)
    if parts is None:
        raise ValueError(f"invalid address: {shown_address(url)}")
    if "://" not in url:
        raise ValueError(
            f"address {_shown_host(url)!r} is not {schemes[0]}: begin it with {schemes[0]}://"
        )
    if parts.scheme not in schemes or not parts.hostname:
        raise ValueError(f"address {shown_address(url)!r} is not {schemes[0]}")
    return url


def _parts_of(url: str) -> SplitResult | None:
    """Returns the parts of a URL, or None if it cannot be parsed.

    The caller raises its error outside this function. An error raised while the ValueError is
    handled would keep it in ``__context__``, and the text of the ValueError may show a password.
    """
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError
    except ValueError:
        return None
    return parts


def _shown_host(url: str) -> str:
    """Returns host and port of a URL without a scheme, or ``***`` for a text that may be a key."""
    host = url.partition("/")[0].partition("?")[0].rpartition("@")[2]
    return host if "." in host or ":" in host or host == "localhost" else "***"


def _has_hashable_id(response: Any) -> bool:
    return isinstance(response, dict) and isinstance(response.get("id"), int | str | None)
