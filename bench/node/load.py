"""A light load generator that encodes requests beforehand and only counts the responses.

It uses one thread with epoll. It is closed-loop: each connection has one request in flight and
sends the next after the complete response. A status other than 200, or an unexpected JSON-RPC
error, is a failure.
"""

from __future__ import annotations

import re
import select
import socket
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Final

from fastevm.bench.node.launch import HOST

RECEIVED_AT_ONCE: Final = 1 << 18  # bytes per read
SILENCE_LIMIT: Final = 30.0  # limit in seconds without any response
POLL_SECONDS: Final = 1.0
MICRO: Final = 1e6
CPU_CLOCK: Final = 2  # clock type: the clockid_t of a process is (~pid << 3) | 2 on Linux

_LENGTH: Final = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")


class LoadError(Exception):
    """The server closed the connection, did not answer, or sent invalid HTTP."""


def batch_of(bodies: Sequence[bytes]) -> bytes:
    """Returns a JSON-RPC batch of the requests."""
    return b"[" + b",".join(bodies) + b"]"


def http(body: bytes) -> bytes:
    """Returns a POST request in the format of client libraries."""
    head = (
        f"POST / HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\n"
        f"Accept: */*\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


@dataclass(slots=True)
class Sample:
    """The result of a run. ``latencies`` in seconds, one per request; ``cpu`` in seconds."""

    items: int  # JSON-RPC calls per request
    latencies: list[float] = field(default_factory=list)
    seconds: float = 0.0
    cpu: float = 0.0
    failures: int = 0

    @property
    def calls(self) -> int:
        """The number of answered calls."""
        return len(self.latencies) * self.items

    @property
    def rate(self) -> float:
        """The number of calls per second."""
        return self.calls / self.seconds if self.seconds else 0.0

    @property
    def cpu_per_call(self) -> float:
        """Seconds of the server's CPU for one call."""
        return self.cpu / self.calls if self.calls else 0.0

    def quantile(self, share: float) -> float:
        """Returns the latency that ``share`` of the requests do not exceed; 0 without requests."""
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def cpu_seconds(pid: int) -> float:
    """Returns the CPU seconds of all threads of a process."""
    return time.clock_gettime((~pid << 3) | CPU_CLOCK)


class Connection:
    """A socket and the response that it waits for."""

    def __init__(self, port: int, address: str | None = None) -> None:
        source = None if address is None else (address, 0)
        self.socket = socket.create_connection((HOST, port), SILENCE_LIMIT, source)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.started = 0.0
        self.parts: list[bytes] = []
        self.missing = 0

    def send(self, request: bytes) -> None:
        """Sends a request. The server must accept all of it before it responds."""
        self.started = time.perf_counter()
        self.socket.sendall(request)

    def receive(self) -> bytes | None:
        """Reads from the socket. Returns the response when it is complete, else None."""
        data = self.socket.recv(RECEIVED_AT_ONCE)
        if not data:
            raise LoadError("the server closed a connection")
        if not self.parts:
            self.missing = size_of(data)
        self.parts.append(data)
        self.missing -= len(data)
        if self.missing > 0:
            return None
        answer = data if len(self.parts) == 1 else b"".join(self.parts)
        self.parts.clear()
        return answer


def size_of(data: bytes) -> int:
    """Returns the size of the response that begins with ``data``, including the header."""
    end = data.find(b"\r\n\r\n")
    found = _LENGTH.search(data, 0, end + 2)
    if end < 0 or found is None:
        raise LoadError(f"no answer with a length: {data[:200]!r}")
    return end + 4 + int(found[1])


def summary(samples: Sequence[Sample]) -> dict[str, float]:
    """Returns medians (microseconds, calls per second), and the number of failures."""
    figures = {
        "cpu_us": [s.cpu_per_call * MICRO for s in samples],
        "per_second": [s.rate for s in samples],
        "p50_us": [s.quantile(0.5) * MICRO for s in samples],
        "p99_us": [s.quantile(0.99) * MICRO for s in samples],
    }
    found = {name: round(statistics.median(values), 2) for name, values in figures.items()}
    return found | {"failures": sum(s.failures for s in samples)}


class Load:
    """Connections to one server, used for many runs."""

    def __init__(self, port: int, pid: int, connections: int) -> None:
        self.pid = pid
        self.poll = select.epoll()
        self.connections: dict[int, Connection] = {}
        for _ in range(connections):
            connection = Connection(port)
            self.connections[connection.socket.fileno()] = connection
            self.poll.register(connection.socket, select.EPOLLIN)

    def close(self) -> None:
        """Closes all connections."""
        self.poll.close()
        for connection in self.connections.values():
            connection.socket.close()

    def cpu(self) -> float:
        """Returns the CPU seconds that the server has used."""
        return cpu_seconds(self.pid)

    def run(
        self,
        requests: Sequence[bytes],
        *,
        items: int = 1,
        seconds: float | None = None,
        may_fail: bool = False,
    ) -> Sample:
        """Sends ``requests`` (see `http`) repeatedly for ``seconds``, or each request once.

        ``may_fail``: JSON-RPC errors do not count as failures.
        """
        sample = Sample(items)
        source = iter(requests) if seconds is None else cycle(requests)
        before, started = cpu_seconds(self.pid), time.perf_counter()
        deadline = float("inf") if seconds is None else started + seconds
        in_flight = 0
        for connection in self.connections.values():
            in_flight += self._next(connection, source)
        heard = started
        while in_flight:
            events = self.poll.poll(POLL_SECONDS)
            now = time.perf_counter()
            if events:
                heard = now
            elif now - heard > SILENCE_LIMIT:
                raise LoadError(f"no answer for {SILENCE_LIMIT:g} s")
            for number, _ in events:
                connection = self.connections[number]
                answer = connection.receive()
                if answer is None:
                    continue
                now = time.perf_counter()
                sample.latencies.append(now - connection.started)
                if not answer.startswith(b"HTTP/1.1 200") or (
                    not may_fail and b'"error":{' in answer
                ):
                    sample.failures += 1
                in_flight -= 1
                if now < deadline:
                    in_flight += self._next(connection, source)
        sample.seconds = time.perf_counter() - started
        sample.cpu = cpu_seconds(self.pid) - before
        return sample

    def _next(self, connection: Connection, source: Iterator[bytes]) -> bool:
        request = next(source, None)
        if request is None:
            return False
        connection.send(request)
        return True
