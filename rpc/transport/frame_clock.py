"""Follows the frames of a WebSocket: how long a message is unfinished, and how many are tiny.

The head of each frame is read where it lies in what came, so that the cost depends on the number of
frames and not on their bytes. `TINY_FRAMES` bounds the number of frames that carry next to nothing.
"""

from typing import Final

CONTROL: Final = 0x08  # bit of opcodes that are no message: close, ping, pong
FINAL: Final = 0x80
MASKED: Final = 0x80
LENGTH: Final = 0x7F
TWO_BYTES: Final = 126
EIGHT_BYTES: Final = 127
MASK_SIZE: Final = 4

TINY: Final = 32  # bytes of payload; no JSON-RPC request is shorter
TINY_FRAMES: Final = 1_024  # in one second of one connection, pings and fragments included
ASSEMBLY_COPIES: Final = 2  # of an unfinished message: as it came, and while it is put together


class TooManyFrames(Exception):
    """A client sends more than `TINY_FRAMES` in a second."""


class FrameClock:
    """When the unfinished message or frame of a client began, by the clock that ``feed`` is given.

    Whole pings and pongs in between change nothing.
    """

    __slots__ = ("_frame", "_head", "_is_control", "_is_final", "_message", "_rest", "_second",
                 "_tiny", "payload", "unfinished")  # fmt: skip

    def __init__(self) -> None:
        self._message: float | None = None  # when the first frame of an unfinished message came
        self._frame: float | None = None  # when the unfinished frame began
        self._head = b""  # of a frame, as far as it came
        self._rest = 0  # bytes of the frame's payload that are to come
        self._is_control = self._is_final = False
        self._second = self._tiny = 0  # a second of the clock, and the tiny frames in it
        self.payload = 0  # bytes of whole messages that have come
        self.unfinished = 0  # bytes of the message that is not whole, as its frames announce them

    @property
    def began(self) -> float | None:
        """When what is unfinished began; None between messages."""
        return self._frame if self._message is None else self._message

    @property
    def memory(self) -> int:
        """Bytes of memory of all messages, if nobody took any.

        What a frame announces counts before it comes. A connection that ends frees its memory some
        turns of the loop later, in each of which the others bring up to 256 KiB.
        """
        return self.payload + ASSEMBLY_COPIES * self.unfinished

    def feed(self, data: bytes, now: float) -> None:
        """Follow the bytes that came at ``now``. Raises `TooManyFrames`."""
        if self._head:
            data, self._head = self._head + data, b""
        if int(now) != self._second:
            self._second, self._tiny = int(now), 0
        at, size = 0, len(data)
        while at < size:
            if self._rest:
                taken = min(self._rest, size - at)
                self._rest -= taken
                at += taken
                if not self._rest:
                    self._end_frame()
                continue
            if self._frame is None:
                self._frame = now
            start = at
            at = self._read_head(data, at)
            if at == start:
                self._head = bytes(data[at:])
                return

    def _read_head(self, data: bytes, at: int) -> int:
        """Read the head of the frame that begins at ``at``; the end, or ``at`` if it is cut."""
        end = at + 2
        if len(data) < end:
            return at
        first, second = data[at], data[at + 1]
        length = second & LENGTH
        if length >= TWO_BYTES:
            end += 2 if length == TWO_BYTES else 8
            length = int.from_bytes(data[at + 2 : end], "big")
        if second & MASKED:
            end += MASK_SIZE
        if len(data) < end:
            return at
        self._is_control, self._is_final = bool(first & CONTROL), bool(first & FINAL)
        self._rest = length
        if not self._is_control:
            self.unfinished += length
        if length < TINY:
            self._tiny += 1
            if self._tiny > TINY_FRAMES:
                raise TooManyFrames
            if not length:
                self._end_frame()
        return end

    def _end_frame(self) -> None:
        if not self._is_control:
            if self._is_final:
                self._message = None
                self.payload += self.unfinished
                self.unfinished = 0
            elif self._message is None:
                self._message = self._frame
        self._frame = None
