"""Logs the node's events to the terminal, in a thread with a bounded queue.

Callers only add work to the queue. If the queue is full, the work is dropped, and a line reports
how much was dropped. So the node never waits for the terminal.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from queue import Full, Queue
from threading import Thread
from time import perf_counter
from typing import Any, Final, TextIO

import msgspec

from fastevm.chain import HeadChange
from fastevm.errors import FastevmError
from fastevm.node import Node
from fastevm.rpc import terminal as late
from fastevm.rpc.context import Context
from fastevm.rpc.contract_files import ContractFiles
from fastevm.rpc.dispatch.dispatcher import Answering, Dispatcher
from fastevm.rpc.dispatch.long_answer import Answer
from fastevm.rpc.dispatch.socket_request import SocketRequest
from fastevm.rpc.errors import RpcError
from fastevm.rpc.terminal.lines import Json, Lines
from fastevm.rpc.terminal.options import TerminalOptions
from fastevm.rpc.view import View
from fastevm.rpc_client.large_json import decode

log: Final = logging.getLogger("fastevm.rpc")

QUEUE_LIMIT: Final = 1_000  # blocks and requests in the queue
# number of newest blocks of a head change whose states stay in memory until they are logged
HELD_LIMIT: Final = 64
BODY_LIMIT: Final = 1024 * 1024  # largest body in bytes whose requests are shown
ERROR: Final = b'"error":'  # occurs in every answer with an error
SHOWN: Final = frozenset(("error", "waits", "happened"))  # members whose records are always shown
# parts of method names whose success is logged
LOGGED: Final = (b"eth_send", b"evm_", b"_mine", b"_reset")
END_SECONDS: Final = 2.0  # time for the last lines when the node stops
QUIET_SECONDS: Final = 0.005  # delay after an idle phase, so that the client gets its answer first

Work = Callable[[], Iterator[Json]]


class Terminal:
    """Writes to ``out``, or to standard output if it is None."""

    def __init__(self, options: TerminalOptions, out: TextIO | None = None) -> None:
        self.options = options
        self.out = sys.stdout if out is None else out
        self._left_out = 0
        self._contracts: ContractFiles | None = None
        self._last_line, self._repeated = "", 0
        self._queue: Queue[Work | None] = Queue(QUEUE_LIMIT)
        self._thread = Thread(target=self._run, name="fastevm-terminal", daemon=True)
        self._recorder_made: late.Recorder | None = None
        coloured = options.coloured
        if coloured is None:
            coloured = self.out.isatty() and "NO_COLOR" not in os.environ
        self._lines = Lines(coloured=coloured)

    def start(self, node: Node) -> None:
        """Start the thread, and log new blocks of a node."""
        self._thread.start()
        node.on_head(lambda change: self._head_moved(node, change))

    def stop(self) -> None:
        """Write the queued work, for at most `END_SECONDS`, and end the thread."""
        try:
            self._queue.put(None, timeout=END_SECONDS)
        except Full:
            return
        self._thread.join(END_SECONDS)

    def dispatcher(self, *parts: Any) -> Dispatcher:
        """Create a dispatcher from ``parts``, and log its requests."""
        made = LoggedDispatcher(*parts)
        self._contracts = made.context.contracts
        made.log_request, made.log_calls = self.request, self.calls
        made.log_answer = self.answer
        return made

    def warm_up(self) -> None:
        """Import the modules that the first block needs, in the thread."""
        self._hand_over(self._loaded)

    def listening(self, urls: Sequence[str]) -> None:
        """Log the addresses of the node."""
        record = [{"event": "listening", "url": url} for url in urls]
        self._hand_over(lambda: iter(record))

    def request(self, body: bytes) -> None:
        """Log the requests in a body."""
        if self.options.requests and (not self.options.as_json or len(body) > BODY_LIMIT):
            self._hand_over(lambda: self._requests(body))

    def calls(self, context: Context, body: bytes) -> None:
        """Log the console output of the calls in a body. Call it when the calls have started.

        Executes the calls again on the current states, but only if a transaction has created or run
        code that writes to the console.
        """
        recorder = self._recorder_made
        if recorder is None or not self.options.console or not recorder.logs_are_there:
            return
        if late.may_call(body):
            newest, budget = late.NewestViews(context), recorder.budget
            self._hand_over(lambda: late.calls_of(context, newest, body, budget))

    def answer(self, context: Context, body: bytes, answer: Answer, seconds: float) -> None:
        """Log the failed requests of a body, or all requests with JSON output and ``requests``.

        Also logs why a node with mining on demand leaves a transaction in the pool, and requests
        that build blocks without transactions, move the clock or reset the chain.
        """
        text = answer if isinstance(answer, bytes) and len(answer) <= BODY_LIMIT else b""
        logs_all = self.options.requests and self.options.as_json
        if len(body) <= BODY_LIMIT and (
            logs_all or ERROR in text or any(name in body for name in LOGGED)
        ):
            latest = context.latest_view()
            self._hand_over(lambda: self._answers(context, latest, body, text, seconds))

    def _answers(
        self, context: Context, latest: View, body: bytes, answer: bytes, seconds: float
    ) -> Iterator[Json]:
        options = self.options
        logs_all = options.requests and options.as_json
        for record in late.answers_of(
            context, self._recorder(), latest, body, answer, params=options.params
        ):
            if logs_all or SHOWN & record.keys():
                yield record | {"seconds": round(seconds, 6)}

    def _head_moved(self, node: Node, change: HeadChange) -> None:
        """Log new blocks. Keeps their states, which a revert may drop before they are logged."""
        views = [View(node, block) for block in change.added if block.transactions]
        for view in views[-HELD_LIMIT:]:
            with suppress(FastevmError, RpcError):
                view.hold()
        if views:
            self._hand_over(lambda: self._blocks(views))

    def _hand_over(self, work: Work) -> None:
        if log.manager.disable >= logging.WARNING:  # anvil_setLoggingEnabled turned logging off
            return
        try:
            self._queue.put_nowait(work)
        except Full:
            self._left_out += 1

    # --- in the thread ----------------------------------------------------------------------------

    def _next(self) -> Work | None:
        """Return the next work. After an idle phase, waits briefly to serve clients first."""
        was_silent = self._queue.empty()
        work = self._queue.get()
        if was_silent and work is not None:
            time.sleep(QUIET_SECONDS)
        return work

    def _run(self) -> None:
        while (work := self._next()) is not None:
            try:
                self._log(work)
            except OSError:  # the reader has closed the output
                return
            except Exception:
                log.exception("an event could not be logged")
        with suppress(OSError):
            self._write_repeated()
            self.out.flush()

    def _log(self, work: Work) -> None:
        left_out, self._left_out = self._left_out, 0
        if left_out:
            self._write({"event": "left out", "count": left_out, "limit": QUEUE_LIMIT})
        for record in work():
            self._write(record)
        self.out.flush()

    def _write(self, record: Json) -> None:
        if not self.options.console:
            record.pop("console", None)
        if self.options.as_json:
            record["time"] = datetime.now(UTC).isoformat(timespec="milliseconds")
            self.out.write(msgspec.json.encode(record).decode() + "\n")
        else:
            self._write_lines(self._lines.of(record), record)

    def _write_lines(self, lines: str, record: Json) -> None:
        """Write lines. Only counts a request with the same lines as the previous request."""
        if record["event"] == "request" and lines == self._last_line:
            self._repeated += 1
            return
        self._write_repeated()
        self._last_line = lines
        self.out.write(lines)

    def _write_repeated(self) -> None:
        if self._repeated:
            times = "once" if self._repeated == 1 else f"{self._repeated} times"
            self.out.write(f"  ... repeated {times}\n")
            self._repeated = 0

    def _loaded(self) -> Iterator[Json]:
        """Create the recorder. Yields the directories of the files with names."""
        contracts = self._recorder().contracts
        for directory, count in contracts.counts().items():
            if count or directory in self.options.abis:
                yield {"event": "names", "directory": str(directory), "contracts": count}

    def _recorder(self) -> late.Recorder:
        if self._recorder_made is None:
            contracts = self._contracts or ContractFiles(self.options.abis)
            self._recorder_made = late.recorder_of(self.options, contracts)
        return self._recorder_made

    def _blocks(self, views: Sequence[View]) -> Iterator[Json]:
        for view in views:
            yield from self._recorder().block(view)

    def _requests(self, body: bytes) -> Iterator[Json]:
        if len(body) > BODY_LIMIT:
            yield {"event": "request", "method": f"a body of {len(body)} bytes"}
            return
        try:
            found = decode(body, msgspec.json.decode)
        except (ValueError, RecursionError):
            yield {"event": "request", "method": "a body that is not JSON"}
            return
        for item in found if isinstance(found, list) else [found]:
            if isinstance(item, dict) and not late.is_of_explorer(item):
                record: Json = {"event": "request", "method": str(item.get("method"))}
                if self.options.params and "params" in item:
                    record["params"] = msgspec.json.encode(item["params"]).decode()
                yield record


class LoggedDispatcher(Dispatcher):
    """A dispatcher that passes requests and answers to the terminal."""

    log_request: Callable[[bytes], None]
    log_calls: Callable[[Context, bytes], None]
    log_answer: Callable[[Context, bytes, Answer, float], None]

    def respond(
        self, body: bytes, client: str = "", request: SocketRequest | None = None
    ) -> bytes | Answering:
        """Answer as `Dispatcher.respond`. Passes the body and then the answer to the terminal."""
        self.log_request(body)
        started = perf_counter()
        found = super().respond(body, client, request)
        self.log_calls(self.context, body)
        if isinstance(found, bytes):
            self.log_answer(self.context, body, found, perf_counter() - started)
            return found

        def answered(task: asyncio.Future[Any]) -> None:
            if not task.cancelled() and task.exception() is None:
                self.log_answer(self.context, body, task.result(), perf_counter() - started)

        task: asyncio.Future[Any] = asyncio.ensure_future(found)
        task.add_done_callback(answered)
        return task
