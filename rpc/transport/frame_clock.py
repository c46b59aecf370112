"""Measures how long a WebSocket message is incomplete, and counts tiny frames.

Only the head of each frame is read, so the cost depends on the number of frames and not on their
size. `TINY_FRAMES` limits the number of frames that carry almost no data.
"""

from typing import Final

CONTROL: Final = 0x08  # set in the opcodes of control frames: close, ping, pong
FINAL: Final = 0x80
MASKED: Final = 0x80
LENGTH: Final = 0x7F
TWO_BYTES: Final = 126
EIGHT_BYTES: Final = 127
MASK_SIZE: Final = 4

TINY: Final = 32  # bytes of payload; every JSON-RPC request is longer
# most tiny frames of one connection in a second, including pings and fragments
TINY_FRAMES: Final = 1_024
# copies of an incomplete message: as received, and while it is assembled
ASSEMBLY_COPIES: Final = 2


class TooManyFrames(Exception):
    """A client sends more than `TINY_FRAMES` in a second."""


class FrameClock:
    """Records when an incomplete message or frame began, in seconds of `feed`'s clock.

    Complete pings and pongs in between do not matter.
    """

    __slots__ = ("_frame", "_head", "_is_control", "_is_final", "_message", "_rest", "_second",
                 "_tiny", "payload", "unfinished")  # fmt: skip

    def __init__(self) -> None:
        self._message: float | None = None  # when the first frame of an incomplete message came
        self._frame: float | None = None  # when the incomplete frame began
        self._head = b""  # received part of an incomplete frame head
        self._rest = 0  # bytes of the frame's payload that are still missing
        self._is_control = self._is_final = False
        self._second = self._tiny = 0  # current second, and the tiny frames in it
        self.payload = 0  # total payload bytes of complete messages
        self.unfinished = 0  # bytes of the incomplete message, as its frame heads announce them

    @property
    def began(self) -> float | None:
        """The time at which the incomplete message or frame began; None between messages."""
        return self._frame if self._message is None else self._message

    @property
    def memory(self) -> int:
        """The bytes of memory of all messages, including processed messages.

        A frame counts with its announced size before the payload comes, because the memory of a
        closed connection is freed only a few loop iterations later. In each iteration, other
        connections receive up to 256 KiB.
        """
        return self.payload + ASSEMBLY_COPIES * self.unfinished

    def feed(self, data: bytes, now: float) -> None:
        """Process bytes that came at time ``now``, in seconds. Raises `TooManyFrames`."""
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
        """Read the frame head at ``at``. Returns its end, or ``at`` if it is incomplete."""
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
