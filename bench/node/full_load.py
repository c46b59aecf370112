"""Loads one node with all kinds of requests together and checks that its memory stays flat.

The load: all calls of the benchmark in rotation, hostile requests, a steady stream of transactions,
and connections, subscriptions and filters that come and go. A node keeps the newest blocks and
states in memory and older ones in files, so its memory grows until the newest blocks and states are
complete.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from threading import Event, Thread
from typing import Any, Final, NamedTuple

from fastevm.bench.node.load import LoadError, batch_of, http
from fastevm.bench.node.rpc_cases import Side, turns
from fastevm.bench.node.sending import INCLUSION_SECONDS, Sending, wait_for
from fastevm.rpc_client.asynchronous import WebSocketClient
from fastevm.rpc_client.messages import RpcRefusal, request_body

MEGABYTE: Final = 2**20
RATE: Final = 200  # transactions per second
SENT_AT_ONCE: Final = 20
TARGET: Final = b"\xf1" * 20
PASSING: Final = 16  # connections opened and closed per cycle
SUBSCRIBERS: Final = 4
LISTEN_SECONDS: Final = 0.5
EXPIRING: Final = 8  # of this many filters, one is left to expire
KINDS: Final = ("newHeads", "logs", "newPendingTransactions")
# Transactions after which memory must stay flat. Until then memory grows as expected: the kept
# states fill up with 51,000 transfers, the filters with 65,536 and the newest blocks with 19,000.
WARM_TRANSACTIONS: Final = 70_000
# Growth that counts as flat: bytes per transaction, and at least NOISE_BYTES in all.
FLAT_BYTES: Final = 16
NOISE_BYTES: Final = 8 * MEGABYTE
LEAST_MOMENTS: Final = 4  # samples per quarter

HOSTILE: Final = tuple(
    http(body)
    for body in (
        b"{", b"[]", b"[1,2,3]", b'{"jsonrpc":"2.0","id":1,"method":"eth_nothing"}',
        request_body("eth_call", [{"to": "0x12"}, "latest"]),
        request_body("eth_getBalance", [1, 2, 3]),
        batch_of([request_body("eth_getStorageAt", ["0x", "x"])] * 100),
    )
)  # fmt: skip


class Moment(NamedTuple):
    """Resident bytes after a number of transactions."""

    memory: int
    transactions: int


class Growth(NamedTuple):
    """The growth in bytes and transactions from the first to the last judged quarter."""

    total: float
    transactions: float

    @property
    def limit(self) -> float:
        """The largest growth that counts as flat."""
        return max(NOISE_BYTES, FLAT_BYTES * self.transactions)

    @property
    def is_flat(self) -> bool:
        """Whether the growth for each transaction is within the limit."""
        return self.total <= self.limit


def growth(moments: Sequence[Moment]) -> Growth | None:
    """Returns the growth of memory after warm-up, or None if the run was too short.

    The process keeps up to 64 MB of freed memory for minutes, then returns all of it to the system.
    So the comparison uses the maximum, which includes freed memory.
    """
    warm = [moment for moment in moments if moment.transactions >= WARM_TRANSACTIONS]
    size = len(warm) // 4
    if size < LEAST_MOMENTS:
        return None
    first, last = warm[:size], warm[-size:]
    memory = [max(moment.memory for moment in part) for part in (first, last)]
    sent = [statistics.median(m.transactions for m in part) for part in (first, last)]
    return Growth(memory[1] - memory[0], sent[1] - sent[0])


@dataclass(slots=True)
class Stream:
    """Transactions at a steady rate from a separate thread."""

    sending: Sending
    failures: int = 0
    fault: str = ""
    stop: Event = field(default_factory=Event)

    def __post_init__(self) -> None:
        """Uses a single connection, because the node closes idle connections."""
        self.sending.load.close()
        self.sending.load = self.sending.node.load(1)

    def run(self) -> None:
        """Sends transactions until `stop`, then waits until all of them are in blocks."""
        try:
            self._send()
            wait_for(lambda: self.sending.balance(TARGET) == self.sending.sent, INCLUSION_SECONDS)
        except (LoadError, OSError) as error:
            self.failures += 1
            self.fault = str(error)

    def _send(self) -> None:
        started = time.monotonic()
        for number in count():
            due = started + number * SENT_AT_ONCE / RATE
            if self.stop.wait(max(0.0, due - time.monotonic())):
                break
            bodies = [
                request_body("eth_sendRawTransaction", ["0x" + t.raw.hex()])
                for t in self.sending.transfers(SENT_AT_ONCE, TARGET)
            ]
            sample = self.sending.load.run([http(batch_of(bodies))], items=SENT_AT_ONCE)
            self.failures += sample.failures


class FullLoad:
    """The load on one node."""

    def __init__(self, side: Side) -> None:
        self.side, self.node = side, side.node
        self.failures = self.calls = self.filters = 0
        self.moments: list[Moment] = []

    def run(self, seconds: float, say: Callable[[str], None]) -> int:
        """Loads the node and prints its memory.

        Returns 1 if a request failed or the memory grew.
        """
        started = time.monotonic()
        with self._streaming() as stream:
            while time.monotonic() - started < seconds:
                self._cycle()
                self.moments.append(Moment(self.node.memory(), stream.sending.sent))
                say(self._line(time.monotonic() - started, stream))
        self.failures += stream.failures
        if stream.fault:
            say(f"transactions: {stream.fault}")
        found = growth(self.moments)
        say(verdict(found))
        return 1 if self.failures or (found is not None and not found.is_flat) else 0

    @contextmanager
    def _streaming(self) -> Any:
        sending = Sending(self.node)
        stream = Stream(sending)
        thread = Thread(target=stream.run, daemon=True)
        thread.start()
        try:
            yield stream
        finally:
            stream.stop.set()
            thread.join()
            sending.load.close()

    def _cycle(self) -> None:
        for sample in turns(self.side):
            self.failures += sample.failures
            self.calls += sample.calls
        load = self.node.load(PASSING)
        load.run(HOSTILE, may_fail=True)
        load.close()
        self._poll()
        asyncio.run(self._listen())

    def _poll(self) -> None:
        """Installs and polls filters, and removes most of them."""
        for method, params in (
            ("eth_newFilter", [{"address": self.side.content.emitter}]),
            ("eth_newBlockFilter", []),
            ("eth_newPendingTransactionFilter", []),
        ):
            client = self.side.client
            name = client.call(method, *params)
            client.call("eth_getFilterChanges", name)
            self.filters += 1
            if self.filters % EXPIRING:
                client.call("eth_uninstallFilter", name)

    async def _listen(self) -> None:
        """Subscribes for a moment. Half of the clients disconnect without a closing handshake."""
        url = self.node.url.replace("http", "ws", 1)
        await asyncio.gather(*(self._subscribe(url, number) for number in range(SUBSCRIBERS)))

    async def _subscribe(self, url: str, number: int) -> None:
        socket = WebSocketClient(url, timeout=INCLUSION_SECONDS)
        await socket.open()
        for kind in KINDS:
            try:
                await socket.call("eth_subscribe", kind, *([{}] if kind == "logs" else []))
            except RpcRefusal:
                self.failures += 1
        with suppress(TimeoutError):
            async with asyncio.timeout(LISTEN_SECONDS):
                async for _ in socket.notifications():
                    pass
        await (socket.close() if number % 2 else socket.drop())

    def _line(self, elapsed: float, stream: Stream) -> str:
        blocks = int(self.side.client.call("eth_blockNumber"), 16)
        return (
            f"{elapsed:8.0f} s{self.node.memory() / MEGABYTE:9.1f} MB{self.calls:13,} calls"
            f"{blocks:7} blocks{stream.sending.sent:9} transactions"
            f"{self.failures + stream.failures:6} failures"
        )


def verdict(found: Growth | None) -> str:
    """Returns the last line of the report: the growth, and whether it counts as flat."""
    if found is None:
        return f"too short to judge: only from {WARM_TRANSACTIONS:,} transactions on is it flat"
    each = found.total / found.transactions
    return (
        f"{'flat' if found.is_flat else 'NOT FLAT'}: {found.total / MEGABYTE:+.2f} MB from the"
        f" first quarter to the last, {each:+.1f} bytes for each of {found.transactions:,.0f}"
        f" transactions (limit {found.limit / MEGABYTE:.2f} MB)"
    )
