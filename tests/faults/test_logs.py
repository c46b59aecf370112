"""Tests that text from outside is escaped in the log, and limited in length and rate."""

import logging
import socket
from pathlib import Path

import pytest

from fastevm.bench.node.launch import fastevm_node
from fastevm.rpc.log_output import BURST, WINDOW, RateLimit, SafeFormatter
from fastevm.rpc.terminal.lines import Lines
from tests.max_wait import MAX_WAIT

HOSTILE = "\x1b[2J\r\n2026-01-01 ERROR fastevm: forged\u202e\u2066\u2028\x9b\ud800"
UNSAFE = "\x1b\r\u202e\u2066\u2028\x9b\ud800"
BROKEN = b"GET / HTTP/1.1\r\nHost: a\r\n broken \x1b[2J" + b"x" * 2_000 + b"\r\n\r\n"
REQUESTS = 200


def record(message: str, *args: object, error: Exception | None = None) -> logging.LogRecord:
    info = None if error is None else (type(error), error, None)
    return logging.LogRecord("fastevm", logging.WARNING, __file__, 1, message, args, info)


def test_a_foreign_text_is_one_line_of_two_kilobytes() -> None:
    line = SafeFormatter("%(asctime)s %(message)s").format(
        record("feed: %s", HOSTILE + "x" * 100_000)
    )
    assert not set(line) & set(UNSAFE + "\n")
    assert len(line) < 2_300 and "\\x1b[2J\\x0d\\x0a2026" in line


def test_a_traceback_cannot_look_like_a_record() -> None:
    text = SafeFormatter("%(message)s").format(
        record("it failed", error=ValueError(HOSTILE + "x" * 100_000))
    )
    first, *lines = text.split("\n")
    assert first == "it failed" and lines and all(line.startswith("    ") for line in lines)
    assert not set(text) & set(UNSAFE) and len(text) < 3_000


def test_a_call_site_is_limited_and_tells_what_it_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    limit, now = RateLimit(), 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    assert sum(limit.filter(record("lost")) for _ in range(1_000)) == BURST
    # The same call site with another exception type has a separate limit.
    assert limit.filter(record("lost", error=ValueError()))
    now = WINDOW
    last = record("lost")
    assert limit.filter(last)
    assert "(990 similar records were left out)" in SafeFormatter().format(last)


def test_names_of_contracts_cannot_steer_the_terminal() -> None:
    reported = {"event": "request", "method": HOSTILE}
    assert not set(Lines(coloured=False).of(reported)[:-1]) & set("\x1b\r\n\u202e\u2066\u2028\x9b")


def test_broken_requests_do_not_fill_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with fastevm_node(log=log) as node:
        for _ in range(REQUESTS):
            with socket.create_connection(("127.0.0.1", node.port), timeout=MAX_WAIT) as client:
                client.sendall(BROKEN)
                assert b" 400 " in client.recv(1_024)
    text = log.read_text()
    assert len(text) < 30_000 and "Traceback" not in text and "\x1b" not in text
    assert text.count("\n") <= 2 * BURST
