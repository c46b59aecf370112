"""Tests how long a WebSocket message counts as incomplete, with frames split at every byte."""

import pytest

from fastevm.rpc.transport.frame_clock import FrameClock

TEXT, CONTINUED, PONG, FINAL = 1, 0, 10, 0x80


def frame(opcode: int, size: int, *, final: bool = True) -> bytes:
    first = bytes([opcode | (FINAL if final else 0)])
    if size < 126:
        length = bytes([0x80 | size])
    elif size < 2**16:
        length = bytes([0x80 | 126]) + size.to_bytes(2, "big")
    else:
        length = bytes([0x80 | 127]) + size.to_bytes(8, "big")
    return first + length + b"mask" + b"x" * size


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65_535, 65_536])
@pytest.mark.parametrize("piece", [1, 3, 1 << 20])
def test_a_whole_message_leaves_nothing_unfinished(size: int, piece: int) -> None:
    clock, data = FrameClock(), frame(TEXT, size) + frame(PONG, 0)
    for at in range(0, len(data), piece):
        clock.feed(data[at : at + piece], 5.0)
        if at + piece < len(data) - len(frame(PONG, 0)):
            assert clock.began == 5.0
    assert clock.began is None


def test_a_message_counts_from_its_first_frame_whatever_comes_in_between() -> None:
    clock = FrameClock()
    clock.feed(frame(TEXT, 10, final=False), 1.0)
    for second in range(2, 50):
        clock.feed(frame(PONG, 3) + frame(CONTINUED, 1, final=False), float(second))
        assert clock.began == 1.0
    clock.feed(frame(CONTINUED, 0), 50.0)
    assert clock.began is None


def test_pongs_alone_are_no_message() -> None:
    clock = FrameClock()
    for second in range(10):
        clock.feed(frame(PONG, 20), float(second))
        assert clock.began is None
    clock.feed(frame(PONG, 20)[:5], 11.0)
    assert clock.began == 11.0
