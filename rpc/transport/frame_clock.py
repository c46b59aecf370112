"""Watches the bytes of a WebSocket for messages that begin and do not end."""

from typing import Final

CONTROL: Final = 0x08  # bit of opcodes that are no message: close, ping, pong
FINAL: Final = 0x80
MASKED: Final = 0x80
LENGTH: Final = 0x7F
TWO_BYTES: Final = 126
EIGHT_BYTES: Final = 127
MASK_SIZE: Final = 4


class FrameClock:
    """When the unfinished message or frame of a client began, by the clock that ``feed`` is given.

    Whole pings and pongs in between change nothing.
    """

    __slots__ = ("_frame", "_head", "_is_control", "_is_final", "_message", "_rest", "payload")

    def __init__(self) -> None:
        self._message: float | None = None  # when the first frame of an unfinished message came
        self._frame: float | None = None  # when the unfinished frame began
        self._head = b""  # of a frame, as far as it came
        self._rest = 0  # bytes of the frame's payload that are to come
        self._is_control = self._is_final = False
        self.payload = 0  # bytes of messages that have come

    @property
    def began(self) -> float | None:
        """When what is unfinished began; None between messages."""
        return self._frame if self._message is None else self._message

    def feed(self, data: bytes, now: float) -> None:
        """Follow the bytes that came at ``now``."""
        at = 0
        while at < len(data):
            if self._rest:
                taken = min(self._rest, len(data) - at)
                self._rest -= taken
                at += taken
                if not self._is_control:
                    self.payload += taken
                if not self._rest:
                    self._end_frame()
                continue
            if self._frame is None:
                self._frame = now
            self._head += data[at : at + 1]
            at += 1
            self._read_head()

    def _read_head(self) -> None:
        head = self._head
        if len(head) < 2:
            return
        length = head[1] & LENGTH
        extra = {TWO_BYTES: 2, EIGHT_BYTES: 8}.get(length, 0)
        if len(head) < 2 + extra + (MASK_SIZE if head[1] & MASKED else 0):
            return
        if extra:
            length = int.from_bytes(head[2 : 2 + extra], "big")
        self._head = b""
        self._is_control, self._is_final = bool(head[0] & CONTROL), bool(head[0] & FINAL)
        self._rest = length
        if not length:
            self._end_frame()

    def _end_frame(self) -> None:
        if not self._is_control:
            if self._is_final:
                self._message = None
            elif self._message is None:
                self._message = self._frame
        self._frame = None
