"""Bodies of paid requests and answers, with the same limits and errors for every web server.

The body of a request is read completely before anything is charged; an incomplete body is refused.
The body is kept in memory, because the payment is bound to its hash. A compressed body must be
complete too: it is decompressed once, without keeping the result.
"""

import json
import re
import zlib
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from fastevm.payments.x402.grants import Reply

LONGEST_REQUEST: Final = 16 * 1024 * 1024  # bytes, of a paid request's body
LONGEST_ANSWER: Final = 256 * 1024 * 1024  # bytes, of a paid answer's body
MOST_DIGITS: Final = 18  # digits of a Content-Length
LEAST_STATUS, MOST_STATUS = 200, 599  # status of a complete answer
BODILESS: Final = (204, 304)  # statuses of answers without a body (RFC 9110)
# Headers that belong to one connection, in lower case. WSGI servers refuse them from applications.
OF_CONNECTIONS: Final = (
    "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection",
    "te", "trailer", "trailers", "transfer-encoding", "upgrade",
)  # fmt: skip
MOST_MEMBERS: Final = 16  # concatenated parts of a gzip body
PART: Final = 1024 * 1024  # bytes that are decompressed in one call
WINDOWS: Final = {"gzip": 31, "x-gzip": 31, "deflate": 15}  # window bits of zlib
IDENTITY: Final = "identity"  # the encoding of a body that is not compressed
RAW_DEFLATE: Final = -15  # window bits of a deflate body without the header of zlib
_UNSENDABLE: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]|[^\x00-\xff]")  # in a header's value
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # a token of RFC 9110


class BadBody(Exception):
    """The body cannot be accepted; ``reply`` is the answer."""

    def __init__(self, status: int, error: str, message: str) -> None:
        super().__init__(message)
        text = json.dumps({"error": error, "message": message}).encode()
        headers = [("Content-Type", "application/json"), ("Cache-Control", "no-store")]
        self.reply = Reply(status, headers, text)


class BodyReader:
    """Collects the body of a request. All methods raise `BadBody`.

    The names in ``headers`` are in lower case. ``length`` is the declared length, None if there is
    none.
    """

    def __init__(self, headers: Mapping[str, str], longest: int = LONGEST_REQUEST) -> None:
        self.longest, self._parts, self._found = longest, list[bytes](), 0
        self.length = _declared(headers)
        self._encoding = headers.get("content-encoding", "").strip().lower()
        if self._encoding not in ("", IDENTITY, *WINDOWS):
            text = (
                f"the body's encoding {self._encoding[:40]!r} cannot be checked:"
                f" expected one of {', '.join(WINDOWS)}, or an uncompressed body"
            )
            raise BadBody(415, "encoding_not_accepted", text)
        if self.length is not None and self.length > longest:
            raise self._too_long()

    @property
    def missing(self) -> int:
        """Returns how many bytes are still to be read.

        Without a declared length, this allows one byte more than the limit, so that a longer body
        is noticed.
        """
        return (self.longest + 1 if self.length is None else self.length) - self._found

    def add(self, part: bytes) -> None:
        """Adds the next part of the body."""
        self._found += len(part)
        if self._found > self.longest:
            raise self._too_long()
        self._parts.append(part)

    def whole(self) -> bytes:
        """Returns the body as it was sent. Call it when the body is complete."""
        if self.length is not None and self.length != self._found:
            text = f"the body has {self._found} bytes, Content-Length says {self.length}"
            raise BadBody(400, "incomplete_body", text)
        body = b"".join(self._parts)
        self._check_encoding(body)
        return body

    def _check_encoding(self, body: bytes) -> None:
        """Refuses a gzip or deflate body that is truncated or too large when decompressed."""
        window = WINDOWS.get(self._encoding)
        if window is None or not body:
            return
        if self._encoding == "deflate" and body[0] & 0xF != zlib.DEFLATED:
            window = RAW_DEFLATE
        found, rest = 0, body
        for _ in range(MOST_MEMBERS):
            unpacker = zlib.decompressobj(window)
            while not unpacker.eof:
                try:
                    part = unpacker.decompress(rest, PART)
                except zlib.error:
                    raise _not_encoded() from None
                found, rest = found + len(part), unpacker.unconsumed_tail
                if found > self.longest:
                    raise self._too_long()
                if not part and not unpacker.eof:
                    text = f"the {self._encoding} body ends before its end mark"
                    raise BadBody(400, "incomplete_body", text)
            rest = unpacker.unused_data.lstrip(b"\0")  # gzip files may be padded with zeros
            if not rest:
                return
        raise _not_encoded()

    def _too_long(self) -> BadBody:
        return BadBody(413, "body_too_large", f"the body exceeds {self.longest} bytes")


def _not_encoded() -> BadBody:
    return BadBody(
        400, "invalid_body", "the body does not have the encoding that its headers declare"
    )


def undecidable(encoding: str) -> BadBody:
    """Returns the refusal of a body that the server has decompressed.

    The server does not notice whether such a body was truncated.
    """
    text = (
        f"this server cannot tell whether a {encoding[:20]} body is complete: send it uncompressed"
    )
    return BadBody(415, "encoding_not_accepted", text)


class AnswerBody:
    """Collects the body of a paid answer."""

    def __init__(self) -> None:
        self._parts, self._length = list[bytes](), 0

    def add(self, part: bytes | bytearray | memoryview) -> None:
        """Adds the next part. Raises OverflowError above ``LONGEST_ANSWER``.

        Raises TypeError for anything but bytes: iterating over a ``bytes`` object yields integers.
        """
        if not isinstance(part, bytes | bytearray | memoryview):
            raise TypeError(f"a part of a paid answer is {type(part).__name__}, not bytes")
        self._parts.append(bytes(part))
        self._length += len(self._parts[-1])
        if self._length > LONGEST_ANSWER:
            raise OverflowError(f"a paid answer exceeds {LONGEST_ANSWER} bytes")

    def whole(self) -> bytes:
        """Returns the body."""
        return b"".join(self._parts)


def sendable(reply: Reply, method: str) -> Reply:
    """Returns an answer that every server can send. Raises ValueError if a server may refuse it.

    ``method`` is the method of the request: an answer to HEAD has a Content-Length but no body.
    Servers refuse an answer only when they start to send it, which is after the payment. So this
    function accepts only answers that all servers send (RFC 9110). Headers of the connection (RFC
    9110, 7.6.1) are left out, because the server sets its own.
    """
    status = reply.status
    # True is an int for isinstance
    if type(status) not in (int, HTTPStatus) or not LEAST_STATUS <= status <= MOST_STATUS:
        raise ValueError(f"a paid answer has the invalid status {status!r:.40}")
    if reply.body and status in BODILESS:
        raise ValueError(
            f"a paid answer with status {status} has a body of {len(reply.body)} bytes"
        )
    headers = list[tuple[str, str]]()
    for name, value in reply.headers:
        if is_bad_header(name, value):
            text = "expected a name, and printable latin-1 as value: percent-encode other letters"
            raise ValueError(
                f"a paid answer has a header that not all servers send: {name!r:.40}: {text}"
            )
        stripped = str.strip(value, " \t")  # an exact str: wsgiref refuses subclasses
        lowered = name.lower()
        if lowered == "transfer-encoding" and stripped.lower() != "chunked":
            raise ValueError(f"a paid answer has the Transfer-Encoding {stripped[:40]!r}")
        if lowered == "content-length":
            _check_length(stripped, None if method == "HEAD" or status in BODILESS else reply.body)
        if lowered not in OF_CONNECTIONS:
            headers.append((str.strip(name), stripped))
    return Reply(int(status), headers, reply.body)


def is_bad_header(name: Any, value: Any) -> bool:
    """Whether HTTP messages cannot contain this header: a name, and text in printable latin-1."""
    if not isinstance(name, str) or not isinstance(value, str):
        return True
    return _NAME.fullmatch(name) is None or _UNSENDABLE.search(value) is not None


def _check_length(text: str, body: bytes | None) -> None:
    """Raises ValueError if ``text`` is not the length of the body. None stands for no body."""
    known = text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS
    if not known or (body is not None and int(text) != len(body)):
        found = "" if body is None else f", the body has {len(body)} bytes"
        raise ValueError(
            f"a paid answer contradicts itself: Content-Length is {text[:40]!r}{found}"
        )


def _declared(headers: Mapping[str, str]) -> int | None:
    coding, text = headers.get("transfer-encoding"), headers.get("content-length", "")
    if coding is not None and coding.strip().lower() != "chunked":
        raise BadBody(400, "invalid_length", "Transfer-Encoding: only chunked is accepted")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS):
        raise BadBody(400, "invalid_length", "Content-Length: expected a number of bytes")
    if coding is not None:
        raise BadBody(
            400, "invalid_length", "Content-Length and Transfer-Encoding exclude each other"
        )
    return int(text)
