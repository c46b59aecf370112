"""Bodies of paid requests and answers, with the same limits and errors for every web server.

The body of a request is read completely before anything is charged; an incomplete body is refused.
The body is kept in memory, because the payment is bound to its hash. A compressed body must be
complete too: it is decompressed once, without keeping the result.
"""

import json
import re
import zlib
from collections.abc import Mapping
from typing import Final

from fastevm.payments.x402.grants import Reply

LONGEST_REQUEST: Final = 16 * 1024 * 1024  # bytes, of a paid request's body
LONGEST_ANSWER: Final = 256 * 1024 * 1024  # bytes, of a paid answer's body
MOST_DIGITS: Final = 18  # of a Content-Length
LEAST_STATUS, MOST_STATUS = 200, 599  # of a complete answer
BODILESS: Final = (204, 304)  # statuses of answers without a body (RFC 9110)
MOST_MEMBERS: Final = 16  # concatenated parts of a gzip body
PART: Final = 1024 * 1024  # bytes that are decompressed in one call
WINDOWS: Final = {"gzip": 31, "x-gzip": 31, "deflate": 15}  # window bits of zlib
IDENTITY: Final = "identity"  # the encoding of a body that is not compressed
RAW_DEFLATE: Final = -15  # window bits of a deflate body without the header of zlib
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

    ``headers``: names in lower case. ``length``: the declared length, None if there is none.
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
        """How many bytes are still to be read.

        Without a declared length one byte more than the limit, so that a longer body is noticed.
        """
        return (self.longest + 1 if self.length is None else self.length) - self._found

    def add(self, part: bytes) -> None:
        """Adds the next part of the body."""
        self._found += len(part)
        if self._found > self.longest:
            raise self._too_long()
        self._parts.append(part)

    def whole(self) -> bytes:
        """Returns the body, which is complete now, as it was sent."""
        if self.length is not None and self.length != self._found:
            text = f"the body has {self._found} bytes, Content-Length says {self.length}"
            raise BadBody(400, "incomplete_body", text)
        body = b"".join(self._parts)
        self._check_encoding(body)
        return body

    def _check_encoding(self, body: bytes) -> None:
        """Refuses a gzip or deflate body that is cut, or exceeds the limit when decompressed."""
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
    """The refusal of a body that the server decompressed without noticing whether it was cut."""
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


def check_answer(reply: Reply, method: str) -> None:
    """Raises ValueError for an answer that a server cannot send unchanged.

    ``method`` is that of the request: an answer to HEAD has a Content-Length but no body.
    """
    if not LEAST_STATUS <= reply.status <= MOST_STATUS:
        raise ValueError(f"a paid answer has the invalid status {reply.status}")
    for name, value in reply.headers:
        if _NAME.fullmatch(name) is None:
            raise ValueError(f"a paid answer has a header with the invalid name {name[:40]!r}")
        if any(letter in value for letter in "\r\n\0"):
            raise ValueError(f"the header {name} of a paid answer has a line break or a NUL")
        if name.lower() == "content-length" and not (method == "HEAD" or reply.status in BODILESS):
            found = str(len(reply.body))
            if value.strip() != found:
                text = f"Content-Length is {value[:40]!r}, the body has {found} bytes"
                raise ValueError(f"a paid answer contradicts itself: {text}")


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
