"""Starts nodes: in a separate process, in a thread, or on this event loop.

Tests and benchmarks start nodes only with this module. Nodes use free ports of the loopback
interface.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import IO, Any, Final, Self

from fastevm import simulate
from fastevm.bench.options import child_environment
from fastevm.core.primitives.replace import replace
from fastevm.rpc.dialect import DIALECTS
from fastevm.rpc.limits import Limits
from fastevm.rpc.transport.server import Server, parse_listener
from fastevm.rpc_client.blocking import JsonRpcClient, call_once
from fastevm.rpc_client.messages import RpcUnreachable

HOST: Final = "127.0.0.1"
START_SECONDS: Final = 60.0
STOP_SECONDS: Final = 10.0
ANSWER_SECONDS: Final = 30.0
PAUSE_SECONDS: Final = 0.005  # between attempts to reach a node that starts


class NodeProcess:
    """A node in a separate process. It can be called, killed, and restarted on the same port.

    ``command``: the command without ``--port``. ``log``: a file to which standard error is
    appended.
    """

    def __init__(self, command: Sequence[str], *, log: Path | None = None) -> None:
        self.port = free_port()
        self.url = f"http://{HOST}:{self.port}"
        self.feed = f"ws://{HOST}:{self.port}/feed"
        self.command = [*command, "--port", str(self.port)]
        self.log = log
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> float:
        """Starts the process and returns the seconds to its first response.

        Raises RuntimeError if the process ends or is already running, and TimeoutError without a
        response.
        """
        if self.running:
            raise RuntimeError(f"a node runs already on port {self.port}")
        started = time.monotonic()
        errors = None if self.log is None else self.log.open("ab")
        try:
            self.process = subprocess.Popen(
                self.command, env=child_environment(), stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL, stderr=errors,
            )  # fmt: skip
        finally:
            if errors is not None:
                errors.close()
        try:
            wait_for(self.answers, START_SECONDS, "the node did not start")
        except BaseException:
            self.kill()
            raise
        return time.monotonic() - started

    @property
    def running(self) -> bool:
        """Whether the process runs."""
        return self.process is not None and self.process.poll() is None

    @property
    def pid(self) -> int:
        """The process id."""
        assert self.process is not None
        return self.process.pid

    @property
    def standard_input(self) -> IO[bytes]:
        """The standard input of the process."""
        assert self.process is not None and self.process.stdin is not None
        return self.process.stdin

    def kill(self) -> None:
        """Ends the process with SIGKILL, so that it cannot clean up."""
        self._end(signal.SIGKILL)

    def stop(self) -> int | None:
        """Sends SIGTERM, and SIGKILL after ten seconds. Returns the exit code."""
        return self._end(signal.SIGTERM)

    def __enter__(self) -> Self:
        """Starts the node, unless the constructor started it."""
        if not self.running:
            self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def answers(self) -> bool:
        """Returns whether the node serves requests. Raises RuntimeError if it has ended."""
        if self.process is not None and self.process.poll() is not None:
            raise RuntimeError(f"the node ended with {self.process.returncode}")
        try:
            self.ask("eth_blockNumber")
        except RpcUnreachable:
            return False
        return True

    def client(self) -> JsonRpcClient:
        """Returns a connection to the node, for one thread."""
        return JsonRpcClient(self.url, timeout=ANSWER_SECONDS)

    def ask(self, method: str, *params: Any) -> Any:
        """Returns the result of one call, from any thread. Raises RpcRefusal or RpcUnreachable."""
        return call_once(self.url, method, *params, timeout=ANSWER_SECONDS)

    def metrics(self) -> dict[str, float]:
        """Returns the node's metrics by name, without the prefix ``fastevm_``. Raises OSError."""
        with urllib.request.urlopen(self.url + "/metrics", timeout=ANSWER_SECONDS) as response:
            return numbers_of(response.read().decode())

    def memory(self) -> int:
        """Returns the resident memory in bytes."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1]) * 1024

    def _end(self, number: signal.Signals) -> int | None:
        process, self.process = self.process, None
        if process is None:
            return None
        if process.poll() is None:
            process.send_signal(number)
        try:
            return process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()
        finally:
            if process.stdin is not None:
                process.stdin.close()


def fastevm_node(
    *options: str, module: Sequence[str] = ("fastevm.rpc",), log: Path | None = None
) -> NodeProcess:
    """Returns a node of this build, not started. ``options``: options of ``fastevm node``."""
    return NodeProcess([sys.executable, "-m", *module, "-q", *options], log=log)


class LoopThread:
    """An event loop in a separate thread, for clients of a test or load that blocks."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Runs a coroutine on the loop and returns its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(START_SECONDS)

    def close(self) -> None:
        """Cancels running coroutines and ends the thread."""
        self.run(self._cancel())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(START_SECONDS)
        self.loop.close()

    async def _cancel(self) -> None:
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class ServerThread:
    """A server of an in-process node, on an event loop in a separate thread.

    It has a listener for every dialect. ``development``: with the methods of ``fastevm dev``.
    """

    def __init__(
        self, node: Any, *, limits: Limits | None = None, development: bool = False
    ) -> None:
        self.server = server_of(node, *DIALECTS, limits=limits, development=development)
        self.thread = LoopThread()
        self.loop = self.thread.loop

    def start(self) -> None:
        """Starts serving. Afterwards ``url`` returns the address of each dialect."""
        self.thread.run(self.server.start())

    def stop(self) -> None:
        """Stops serving."""
        self.thread.run(self.server.stop())
        self.thread.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def url(self, dialect: str = "preconf") -> str:
        """Returns the address that serves ``dialect``."""
        return self.server.urls[list(DIALECTS).index(dialect)]

    def client(self, dialect: str = "preconf") -> JsonRpcClient:
        """Returns a connection to the server, for one thread."""
        return JsonRpcClient(self.url(dialect), timeout=ANSWER_SECONDS)


def server_of(
    node: Any,
    *dialects: str,
    port: int = 0,
    simulator: Any = simulate,
    development: bool = False,
    **options: Any,
) -> Server:
    """Returns a server for this event loop, not started, with a listener for each dialect.

    Without dialects, the server has one listener for preconf. A dialect may name its receipts, as
    in ``preconf/preconfirmed``. With ``development``, each listener has the methods of a
    development node. ``options`` are passed to ``Server``.
    """
    listeners = [parse_listener(f"{name}@{HOST}:{port}") for name in dialects or ("preconf",)]
    if development:
        listeners = [
            replace(listener, dialect=listener.dialect.of_development()) for listener in listeners
        ]
    return Server(node, simulator, listeners, **options)


def numbers_of(metrics: str) -> dict[str, float]:
    """Parses Prometheus text. Returns values by name, without the prefix ``fastevm_``."""
    found = {}
    for line in metrics.splitlines():
        name, _, value = line.rpartition(" ")
        if name and not line.startswith("#"):
            found[name.removeprefix("fastevm_")] = float(value)
    return found


def wait_for(condition: Callable[[], Any], seconds: float, complaint: str) -> Any:
    """Returns the first true value of ``condition``. Raises TimeoutError with ``complaint`` after
    ``seconds``.

    OSError and RpcUnreachable raised by ``condition`` mean "not yet".
    """
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            value = condition()
        except (OSError, RpcUnreachable):
            value = None
        if value:
            return value
        time.sleep(PAUSE_SECONDS)
    raise TimeoutError(complaint)


def free_port() -> int:
    """Returns a port of the loopback interface that is free now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
