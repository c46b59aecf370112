"""Tells a developer what happens in the node: in a thread of its own, behind a bounded queue.

Whoever has something to tell only hands it over. What does not fit in the queue is counted, and
the number is told: the node never waits for its reader.
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
from fastevm.node import Node
from fastevm.rpc import terminal as late
from fastevm.rpc.context import Context
from fastevm.rpc.contract_files import ContractFiles
from fastevm.rpc.dispatch.dispatcher import Answering, Dispatcher
from fastevm.rpc.dispatch.long_answer import Answer
from fastevm.rpc.dispatch.socket_request import SocketRequest
from fastevm.rpc.terminal.lines import Json, Lines
from fastevm.rpc.terminal.options import TerminalOptions
from fastevm.rpc.view import View

log: Final = logging.getLogger("fastevm.rpc")

QUEUE_LIMIT: Final = 1_000  # blocks and requests that wait to be told
BODY_LIMIT: Final = 1024 * 1024  # bytes of a body whose requests are named
ERROR: Final = b'"error":'  # in an answer that may hold one
SEND: Final = b"eth_send"  # in a body that may send a transaction
END_SECONDS: Final = 2.0  # that the last lines get at the end
TELL_AFTER: Final = 0.005  # seconds from what happened after a silence: its client comes first

Work = Callable[[], Iterator[Json]]


class Terminal:
    """Writes what the node does to ``out``, standard output if it is None."""

    def __init__(self, options: TerminalOptions, out: TextIO | None = None) -> None:
        self.options = options
        self.out = sys.stdout if out is None else out
        self._left_out = 0
        self._contracts: ContractFiles | None = None
        self._last_line, self._repeated = "", 0
        self._queue: Queue[Work | None] = Queue(QUEUE_LIMIT)
        self._thread = Thread(target=self._run, name="fastevm-terminal", daemon=True)
        self._teller: late.Teller | None = None
        coloured = options.coloured
        if coloured is None:
            coloured = self.out.isatty() and "NO_COLOR" not in os.environ
        self._lines = Lines(coloured=coloured)

    def start(self, node: Node) -> None:
        """Begin to tell of a node's blocks."""
        self._thread.start()
        node.on_head(lambda change: self._head_moved(node, change))

    def stop(self) -> None:
        """Tell what waits, for a while, and end."""
        try:
            self._queue.put(None, timeout=END_SECONDS)
        except Full:
            return
        self._thread.join(END_SECONDS)

    def dispatcher(self, *parts: Any) -> Dispatcher:
        """A dispatcher of these parts, whose requests the terminal hears of."""
        made = ToldDispatcher(*parts)
        self._contracts = made.context.contracts
        made.tell, made.tell_answer = self.request, self.answer
        return made

    def warm_up(self) -> None:
        """Load what the first block needs, in the thread."""
        self._hand_over(self._loaded)

    def listening(self, urls: Sequence[str]) -> None:
        """Tell where the node is reached."""
        told = [{"event": "listening", "url": url} for url in urls]
        self._hand_over(lambda: iter(told))

    def request(self, context: Context, body: bytes) -> None:
        """Tell of the requests in a body, and of what its calls write to the console.

        Calls are executed once more, as soon as code was seen that writes there.
        """
        if self.options.requests and (not self.options.as_json or len(body) > BODY_LIMIT):
            self._hand_over(lambda: self._requests(body))
        teller = self._teller
        if teller is None or not self.options.console or not teller.logs_are_there:
            return
        if late.may_call(body):
            latest, budget = context.latest_view(), teller.budget
            self._hand_over(lambda: late.calls_of(context, latest, body, budget))

    def answer(self, context: Context, body: bytes, answer: Answer, seconds: float) -> None:
        """Log the requests of a body that failed; as JSON, all requests if they are wanted.

        Also logs transactions that a node which mines at once does not mine, with the reason.
        """
        text = answer if isinstance(answer, bytes) and len(answer) <= BODY_LIMIT else b""
        logs_all = self.options.requests and self.options.as_json
        if len(body) <= BODY_LIMIT and (logs_all or ERROR in text or SEND in body):
            self._hand_over(lambda: self._answers(context, body, text, seconds))

    def _answers(
        self, context: Context, body: bytes, answer: bytes, seconds: float
    ) -> Iterator[Json]:
        options = self.options
        logs_all = options.requests and options.as_json
        for record in late.answers_of(
            context, self._told_by(), body, answer, params=options.params
        ):
            if logs_all or "error" in record or "waits" in record:
                yield record | {"seconds": round(seconds, 6)}

    def _head_moved(self, node: Node, change: HeadChange) -> None:
        if any(block.transactions for block in change.added):
            self._hand_over(lambda: self._blocks(node, change))

    def _hand_over(self, work: Work) -> None:
        if log.manager.disable >= logging.WARNING:  # by anvil_setLoggingEnabled
            return
        try:
            self._queue.put_nowait(work)
        except Full:
            self._left_out += 1

    # --- in the thread ----------------------------------------------------------------------------

    def _next(self) -> Work | None:
        """The next thing to tell; after a silence it waits a little: clients are served first."""
        was_silent = self._queue.empty()
        work = self._queue.get()
        if was_silent and work is not None:
            time.sleep(TELL_AFTER)
        return work

    def _run(self) -> None:
        while (work := self._next()) is not None:
            try:
                self._tell(work)
            except OSError:  # nobody reads any more
                return
            except Exception:
                log.exception("what happened could not be told")
        with suppress(OSError):
            self._write_repeated()
            self.out.flush()

    def _tell(self, work: Work) -> None:
        left_out, self._left_out = self._left_out, 0
        if left_out:
            self._write({"event": "left out", "count": left_out, "limit": QUEUE_LIMIT})
        for told in work():
            self._write(told)
        self.out.flush()

    def _write(self, told: Json) -> None:
        if not self.options.console:
            told.pop("console", None)
        if self.options.as_json:
            told["time"] = datetime.now(UTC).isoformat(timespec="milliseconds")
            self.out.write(msgspec.json.encode(told).decode() + "\n")
        else:
            self._write_lines(self._lines.of(told), told)

    def _write_lines(self, lines: str, told: Json) -> None:
        """Write lines; a request like the one before is only counted."""
        if told["event"] == "request" and lines == self._last_line:
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
        self._told_by()
        return iter(())

    def _told_by(self) -> late.Teller:
        if self._teller is None:
            contracts = self._contracts or ContractFiles(self.options.abis)
            self._teller = late.teller_of(self.options, contracts)
        return self._teller

    def _blocks(self, node: Node, change: HeadChange) -> Iterator[Json]:
        for block in change.added:
            if block.transactions:
                yield from self._told_by().block(View(node, block))

    def _requests(self, body: bytes) -> Iterator[Json]:
        if len(body) > BODY_LIMIT:
            yield {"event": "request", "method": f"a body of {len(body)} bytes"}
            return
        try:
            found = msgspec.json.decode(body)
        except msgspec.DecodeError:
            yield {"event": "request", "method": "a body that is no JSON"}
            return
        for one in found if isinstance(found, list) else [found]:
            if isinstance(one, dict):
                told: Json = {"event": "request", "method": str(one.get("method"))}
                if self.options.params and "params" in one:
                    told["params"] = msgspec.json.encode(one["params"]).decode()
                yield told


class ToldDispatcher(Dispatcher):
    """A dispatcher whose requests are told."""

    tell: Callable[[Context, bytes], None]
    tell_answer: Callable[[Context, bytes, Answer, float], None]

    def respond(
        self, body: bytes, client: str = "", request: SocketRequest | None = None
    ) -> bytes | Answering:
        """As of any dispatcher; the terminal gets the body before, and the answer after."""
        self.tell(self.context, body)
        started = perf_counter()
        found = super().respond(body, client, request)
        if isinstance(found, bytes):
            self.tell_answer(self.context, body, found, perf_counter() - started)
            return found

        def answered(task: asyncio.Future[Any]) -> None:
            if not task.cancelled() and task.exception() is None:
                self.tell_answer(self.context, body, task.result(), perf_counter() - started)

        task: asyncio.Future[Any] = asyncio.ensure_future(found)
        task.add_done_callback(answered)
        return task
