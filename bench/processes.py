"""Nodes in processes of their own, to be asked, killed and started again on the same port."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
START_SECONDS = 60.0
ANSWER_SECONDS = 30.0
PAUSE = 0.02


def numbers_of(metrics: str) -> dict[str, float]:
    """Prometheus text as numbers by name, without the prefix ``fastevm_``."""
    found = {}
    for line in metrics.splitlines():
        name, _, value = line.rpartition(" ")
        if name and not line.startswith("#"):
            found[name.removeprefix("fastevm_")] = float(value)
    return found


class Refused(Exception):
    """A JSON-RPC error: its code and message."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


class NodeProcess:
    """One node; ``options`` are those of its command line but the port, which stays the same."""

    def __init__(
        self, *options: str, module: Sequence[str] = ("fastevm.rpc",), log: Path | None = None
    ) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.feed = f"ws://127.0.0.1:{self.port}/feed"
        self.command = [sys.executable, "-m", *module, "--port", str(self.port), "-q", *options]
        self.log = log
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> float:
        """Start it and wait for the first answer; the seconds that took."""
        started = time.monotonic()
        errors = None if self.log is None else self.log.open("ab")
        self.process = subprocess.Popen(
            self.command,
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stderr=errors,
        )
        wait_for(self.answers, START_SECONDS, "the node did not start")
        return time.monotonic() - started

    def kill(self) -> None:
        """End it as a loss of power to the process would: nothing is said and nothing finished."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it politely."""
        self._end(signal.SIGTERM)

    def answers(self) -> bool:
        """Whether it serves requests. RuntimeError when the process has ended."""
        if self.process is not None and self.process.poll() is not None:
            raise RuntimeError(f"the node ended with {self.process.returncode}")
        try:
            self.ask("eth_blockNumber")
        except OSError:
            return False
        return True

    def ask(self, method: str, *params: Any) -> Any:
        """The result of a call; Refused for an error, OSError when the node is not there."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as response:
            answer = json.load(response)
        if "error" in answer:
            raise Refused(answer["error"]["code"], answer["error"]["message"])
        return answer["result"]

    def metrics(self) -> dict[str, float]:
        """Its own numbers, by name without the prefix ``fastevm_``."""
        with urllib.request.urlopen(self.url + "/metrics", timeout=ANSWER_SECONDS) as response:
            return numbers_of(response.read().decode())

    def memory(self) -> int:
        """Bytes of resident memory."""
        assert self.process is not None
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1]) * 1024

    def _end(self, number: signal.Signals) -> None:
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.send_signal(number)
        self.process.wait(START_SECONDS)
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process = None


def wait_for(condition: Callable[[], Any], seconds: float, complaint: str) -> Any:
    """The first true value of ``condition``; TimeoutError with ``complaint`` when it takes longer.

    OSError of ``condition`` counts as not yet.
    """
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            value = condition()
        except OSError:
            value = None
        if value:
            return value
        time.sleep(PAUSE)
    raise TimeoutError(complaint)


def free_port() -> int:
    """A port on the loopback interface that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
