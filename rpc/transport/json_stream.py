"""JSON objects and arrays cut out of a stream of bytes."""

import re
from collections.abc import Iterator
from typing import Final

OPENING: Final = b"{["
STRUCTURE: Final = re.compile(rb'["{}\[\]]')
BLANK: Final = re.compile(rb"[ \t\r\n]*")
QUOTE: Final = ord('"')
BACKSLASH: Final = ord("\\")


class StreamFault(Exception):
    """The data is not a JSON object or array, or too large."""


class JsonStream:
    """Cuts values by their brackets: blanks and line ends between and inside them are allowed.

    Brackets are counted, not compared: whether a value is JSON says who parses it.
    """

    def __init__(self, limit: int) -> None:
        """``limit``: bytes of one value."""
        self.limit = limit
        self._data = bytearray()
        self._at = 0  # up to which it was looked through
        self._depth = 0
        self._in_text = False

    @property
    def unfinished(self) -> bool:
        """Whether a value is incomplete."""
        return bool(self._data)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Add what came; the values that it completes. StreamFault for what can become none."""
        self._data += data
        while self._begins():
            end = self._end()
            if (end or len(self._data)) > self.limit:
                raise StreamFault(f"the message is larger than {self.limit} bytes")
            if not end:
                return
            value = bytes(self._data[:end])
            del self._data[:end]
            self._at = 0
            yield value

    def _begins(self) -> bool:
        """Drop blanks between values. Returns whether a value follows."""
        if not self._depth:
            blank = BLANK.match(self._data)
            assert blank is not None
            del self._data[: blank.end()]
            if self._data and self._data[0] not in OPENING:
                raise StreamFault("the message is no JSON object or array")
        return bool(self._data)

    def _end(self) -> int:
        """The length of the value in front; 0 while its end has not come."""
        while True:
            if self._in_text and not self._skip_text():
                return 0
            found = STRUCTURE.search(self._data, self._at)
            if found is None:
                self._at = len(self._data)
                return 0
            self._at = found.end()
            mark = self._data[found.start()]
            if mark == QUOTE:
                self._in_text = True
            else:
                self._depth += 1 if mark in OPENING else -1
            if not self._depth:
                return self._at

    def _skip_text(self) -> bool:
        """Go behind the quote that ends a text; whether it has come."""
        while (quote := self._data.find(b'"', self._at)) >= 0:
            first = quote
            while self._data[first - 1] == BACKSLASH:
                first -= 1
            self._at = quote + 1
            if (quote - first) % 2 == 0:
                self._in_text = False
                return True
        self._at = len(self._data)
        return False
