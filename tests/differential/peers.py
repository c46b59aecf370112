"""Runs peers: other EVM implementations, each in its own process and Python environment."""

import json
import os
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from fastevm.bench.peers.compiled import PROGRAMS, NotBuilt

ROOT = Path(__file__).parents[2]
WORKERS = Path(__file__).parent / "workers"
# How many cases may wait in a peer's input, so that neither the peer nor fastevm is idle.
AHEAD = 8
END_SECONDS = 10.0

# Peer -> its Python environment and its script in `workers`. `make $(VENV)/.peers` creates the
# environments.
PEERS = {
    "eels": (".venv-eels", "eels.py"),
    "py-evm": (".venv-py-evm", "py_evm.py"),
    "pyrevm": (".venv-pyrevm", "revm.py"),
    "amsterdam": (".venv-eels", "amsterdam.py"),
    "op-stack": (".venv-eels", "op_stack.py"),
    "py-evm-stateless": (".venv-py-evm", "py_evm_stateless.py"),
}
# Peer -> its executable in Go or Rust, which `python -m fastevm.bench.peers` builds.
COMPILED = {"geth": "on-geth", "revm": "on-revm"}


class PeerError(Exception):
    """Raised if a peer cannot be started or fails on a case."""


def python_of(name: str) -> Path:
    """Returns the interpreter of a peer's environment. Raises PeerError if it is not installed."""
    environment, _ = PEERS[name]
    python = Path(os.environ.get("FASTEVM_PEERS", ROOT)) / environment / "bin" / "python"
    if not python.exists():
        raise PeerError(
            f"the peer {name} is not installed: there is no {python}; `make peers` installs it"
        )
    return python


def command_of(name: str) -> list[str | Path]:
    """Returns the command of a peer's worker. Raises PeerError if it is not installed."""
    if name in COMPILED:
        try:
            return [PROGRAMS[COMPILED[name]].found(), "differential"]
        except NotBuilt as reason:
            raise PeerError(f"the peer {name} is not installed: {reason}") from reason
    return [python_of(name), "-B", WORKERS / PEERS[name][1]]


class Peer:
    """The worker process of a peer. Use it in a `with` statement.

    ``command``: starts the worker; by default the command of the peer ``name``.
    """

    def __init__(self, name: str, command: Sequence[str | Path] | None = None) -> None:
        self.name = name
        # `make sanitize` preloads sanitizer libraries for fastevm. They must not run in peers.
        environ = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
        # stderr goes to a file, because a full pipe would block the peer.
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the peer)
        self.process = subprocess.Popen(
            command or command_of(name), cwd=WORKERS, env=environ, text=True, bufsize=1,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
        )  # fmt: skip
        # Writing in a thread avoids a deadlock: a peer reads no case while its last answer is
        # unread.
        self.writer = ThreadPoolExecutor(1)
        self.title = self.read()["peer"]

    def __enter__(self) -> "Peer":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the process."""
        self.process.kill()
        self.writer.shutdown(cancel_futures=True)
        self.process.communicate()
        self.errors.close()

    def read(self) -> dict[str, Any]:
        """Returns the next answer. Raises PeerError with the peer's message."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self.process.wait(END_SECONDS)
            self.errors.seek(0)
            words = self.errors.read().decode(errors="replace")
            raise PeerError(f"{self.name} ended: {words[-2000:]}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def send(self, case: str) -> None:
        """Sends a case as a line of JSON without waiting. `read` raises if the peer has ended."""
        assert self.process.stdin is not None
        self.writer.submit(self.process.stdin.write, case + "\n")

    def run(self, case: str) -> dict[str, Any]:
        """Returns the outcome of one case."""
        self.send(case)
        return self.read()

    def run_all(self, cases: Iterable[str]) -> Iterator[dict[str, Any]]:
        """Yields the outcomes in the order of the cases.

        The peer works while the next cases are made.
        """
        waiting = 0
        for case in cases:
            self.send(case)
            waiting += 1
            if waiting > AHEAD:
                yield self.read()
                waiting -= 1
        while waiting:
            yield self.read()
            waiting -= 1
