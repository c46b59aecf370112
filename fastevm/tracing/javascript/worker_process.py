"""Worker processes of JavaScript tracers, and the protocol between them and the node."""

from __future__ import annotations

import atexit
import json
import os
import select
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from fastevm.tracing.javascript.worker import HEAD
from fastevm.tracing.values import TracingError

MISSING: Final = (
    "tracers in JavaScript need an engine: install fastevm[javascript], or give the name of one"
)
MAX_IDLE: Final = 2  # most idle worker processes
MAX_ANSWER: Final = 64 * 1024 * 1024  # most bytes of one frame from a worker
SHOWN: Final = 500  # most characters of a message from a tracer
WORKER: Final = Path(__file__).with_name("worker.py")
OUT_OF_MEMORY: Final = "null"  # QuickJS's message if memory is exhausted

_idle: list[Worker] = []
_lock = threading.Lock()


def engine_folder() -> str:
    """Returns the folder of the package quickjs. Raises TracingError if it is not installed."""
    spec = find_spec("quickjs")
    if spec is None or spec.origin is None:
        raise TracingError(MISSING)
    origin = Path(spec.origin)
    return str(origin.parent.parent if origin.name == "__init__.py" else origin.parent)


class Worker:
    """One worker process. ``answer`` is called with each read of the state."""

    def __init__(self) -> None:
        import subprocess  # imported here, because it is rarely needed

        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(WORKER), engine_folder()],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={},
        )  # fmt: skip
        assert self._process.stdin is not None and self._process.stdout is not None
        self._in, self._out = self._process.stdin, self._process.stdout.fileno()
        self._buffer = bytearray()
        self.answer: Callable[[Any], Any] = lambda question: None
        self.ends = 0.0  # monotonic seconds

    def request(self, kind: bytes, text: str) -> str:
        """Sends a request and returns the answer.

        Raises TracingError for an error of the tracer, at the deadline and if the process ends.
        """
        self._send(kind, text)
        while True:
            kind, text = self._receive()
            if kind == b"Q":
                self._send(b"A", json.dumps(self.answer(json.loads(text))))
            elif kind == b"D":
                return text
            else:
                raise TracingError(_message(*json.loads(text)))

    def kill(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.wait()
        self._in.close()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _send(self, kind: bytes, text: str) -> None:
        data = text.encode("utf-8", "replace")
        try:
            self._in.write(HEAD.pack(kind, len(data)) + data)
            self._in.flush()
        except OSError:
            raise TracingError("the JavaScript engine ended: the tracer used too much") from None

    def _receive(self) -> tuple[bytes, str]:
        kind, size = HEAD.unpack(self._read(HEAD.size))
        if size > MAX_ANSWER:
            raise TracingError(f"tracing failed: the tracer's result exceeds {MAX_ANSWER} bytes")
        return kind, self._read(size).decode()

    def _read(self, size: int) -> bytes:
        while len(self._buffer) < size:
            left = self.ends - time.monotonic()
            if left <= 0 or not select.select([self._out], [], [], left)[0]:
                raise TracingError("execution timeout")
            data = os.read(self._out, 1 << 16)
            if not data:
                raise TracingError("the JavaScript engine ended: the tracer used too much")
            self._buffer += data
        found = bytes(self._buffer[:size])
        del self._buffer[:size]
        return found


def _message(text: str, function: str) -> str:
    """Returns the error of a tracer function with go-ethereum's text."""
    first = text.partition("\n")[0]
    if first == OUT_OF_MEMORY:
        first = "out of memory"
    where = f"    in server-side tracer function '{function}'" if function else ""
    return first[:SHOWN] + where


@contextmanager
def worker(seconds: float) -> Iterator[Worker]:
    """Returns a context with an idle or new worker.

    Errors and a run of ``seconds`` kill the worker.
    """
    with _lock:
        found = _idle.pop() if _idle else None
    if found is None:
        found = Worker()
    found.ends = time.monotonic() + seconds
    try:
        yield found
    except BaseException:
        found.kill()
        raise
    with _lock:
        if len(_idle) < MAX_IDLE:
            _idle.append(found)
            return
    found.kill()


@atexit.register
def end_idle_workers() -> None:
    """Ends the idle workers."""
    with _lock:
        ended, _idle[:] = _idle[:], []
    for each in ended:
        each.kill()


def _forget_workers() -> None:
    """Forgets the workers after a fork, because they belong to the parent process."""
    global _lock
    _lock = threading.Lock()
    _idle.clear()


os.register_at_fork(after_in_child=_forget_workers)
