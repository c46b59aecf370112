"""Tests that the progress bar is shown only on a terminal, after a second."""

import io
import sys

import pytest

from fastevm.fork import progress
from fastevm.fork.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def without_rich(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(progress, "import_module", missing)


def shown(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, after: float) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "SHOWN_AFTER_SECONDS", after)
    bar = Progress("http://host", 10)
    bar.advance(4)
    text = stream.getvalue()
    bar.close()
    return text


def test_a_terminal_that_waits_sees_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    assert "fetching from http://host: 4 of 10" in shown(monkeypatch, stream, after=0)
    assert stream.getvalue().endswith("\r")


def test_a_short_wait_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, Terminal(), after=60) == ""


def test_a_file_sees_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, io.StringIO(), after=0) == ""


def test_a_terminal_shows_one_bar_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "SHOWN_AFTER_SECONDS", 0)
    first, second = Progress("http://a", 2), Progress("http://b", 2)
    first.advance(1)
    second.advance(1)
    assert "http://b" not in stream.getvalue()
    first.close()
    second.advance(1)
    assert "http://b: 2 of 2" in stream.getvalue()
    second.close()
