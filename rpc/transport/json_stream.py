"""Splits a stream of bytes into JSON objects and arrays."""

import re
from collections.abc import Iterator
from typing import Final

OPENING: Final = b"{["
STRUCTURE: Final = re.compile(rb'["{}\[\]]')
BLANK: Final = re.compile(rb"[ \t\r\n]*")
QUOTE: Final = ord('"')
BACKSLASH: Final = ord("\\")


class StreamFault(Exception):
    """The data is not a JSON object or array, or is too large."""


class JsonStream:
    """Splits a stream into values by brackets. Allows whitespace between and inside values.

    Brackets are counted but not matched, because the parser of the value checks the syntax.
    """

    def __init__(self, limit: int) -> None:
        """``limit`` is the maximum size of a value in bytes."""
        self.limit = limit
        self._data = bytearray()
        self._at = 0  # bytes before this are scanned
        self._depth = 0
        self._in_text = False

    @property
    def unfinished(self) -> bool:
        """Return whether a value is incomplete."""
        return bool(self._data)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Add bytes. Yields the completed values. Raises StreamFault for invalid data."""
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
        """Drop whitespace before a value. Returns whether a value follows."""
        if not self._depth:
            blank = BLANK.match(self._data)
            assert blank is not None
            del self._data[: blank.end()]
            if self._data and self._data[0] not in OPENING:
                raise StreamFault("the message is not a JSON object or array")
        return bool(self._data)

    def _end(self) -> int:
        """Return the length of the first value; 0 if it is incomplete."""
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
        """Move past the closing quote of a string. Returns whether it was found."""
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
