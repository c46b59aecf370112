"""Runs cases on the engines under test: fastevm in this process, each peer in its own process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import fastevm
from fastevm.bench.options import HERE, ROOT, found_first
from fastevm.bench.peers.compiled import PROGRAMS, NotBuilt
from fastevm.bench.peers.protocol import call_of, data, number, storage
from fastevm.bench.programs.cases import Case, Outcome

PEERS = HERE / "peers"


class PeerError(Exception):
    """A peer that cannot be used, or cannot run this case."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """The outcome of a case's first run, and its thread CPU seconds."""

    outcome: Outcome
    seconds: float
    warm_slots: bool = False  # the engine treats the slots of the prepared state as warm


class Engine(Protocol):
    """An engine that can run cases."""

    name: str
    version: str
    slow: bool

    def prepare(self, case: Case) -> Prepared: ...
    def time(self, case: Case, runs: int) -> float: ...
    def close(self) -> None: ...


def machine_for(case: Case) -> fastevm.EVM:
    """Returns a machine with the state and the block of a case."""
    env = case.environment
    machine = fastevm.EVM(
        env.get("fork", "cancun"),
        chain_id=env.get("chain_id", 1),
        number=env.get("number", 1),
        timestamp=env.get("timestamp", 1),
        gas_limit=env.get("gas_limit", 30_000_000),
        base_fee=env.get("base_fee", 0),
    )
    for address, account in case.document["pre"].items():
        machine.set_account(
            data(address),
            number(account.get("balance")),
            number(account.get("nonce")),
            data(account.get("code")),
            storage(account),
        )
    return machine


def call_for(case: Case) -> Callable[[], fastevm.ExecutionResult]:
    """Returns a function that runs a case. Each call starts from the same state."""
    payload, gas = call_of(case.document, slow=False)
    return partial(
        machine_for(case).call,
        data(case.document["to"]),
        payload,
        sender=data(case.document["caller"]),
        gas=gas,
    )


def outcome_of(result: fastevm.ExecutionResult) -> Outcome:
    """Returns a result in the format of a case file."""
    return Outcome(result.gas_used, "0x" + result.output[:256].hex(), result.success)


class Fastevm:
    """Runs cases on fastevm in this process."""

    name = "fastevm"
    slow = False

    def __init__(self) -> None:
        self.version = fastevm.__version__
        self.calls: dict[str, Callable[[], fastevm.ExecutionResult]] = {}

    def prepare(self, case: Case) -> Prepared:
        """Prepares a case and runs it once."""
        self.calls[case.name] = call = call_for(case)
        start = time.thread_time_ns()
        result = call()
        seconds = (time.thread_time_ns() - start) / 1e9
        return Prepared(outcome_of(result), seconds)

    def time(self, case: Case, runs: int) -> float:
        """Returns the thread CPU seconds of a number of runs."""
        call = self.calls[case.name]
        rounds = range(runs)
        start = time.thread_time_ns()
        for _ in rounds:
            call()
        return (time.thread_time_ns() - start) / 1e9

    def close(self) -> None:
        """Releases the machines."""
        self.calls.clear()


class Peer:
    """Runs cases on a peer in a worker process, started with its own Python or with ``command``."""

    def __init__(
        self, name: str, module: str, python: Path, slow: bool,
        command: Sequence[str | Path] | None = None,
    ) -> None:  # fmt: skip
        self.name = name
        self.slow = slow
        self.process = subprocess.Popen(
            command or [python, PEERS / "worker.py", module],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True,
        )  # fmt: skip
        try:
            self.version = self.ask(do="hello")["version"]
        except PeerError:
            self.close()
            raise

    def ask(self, **request: object) -> dict[str, Any]:
        """Sends a request and returns the answer. Raises PeerError if the peer fails or ends."""
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        except OSError as error:
            raise PeerError(f"{self.name} does not start") from error
        line = self.process.stdout.readline()
        if not line:
            raise PeerError(f"{self.name} ended without an answer")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise PeerError(answer["error"])
        return answer

    def prepare(self, case: Case) -> Prepared:
        """Prepares a case and runs it once."""
        answer = self.ask(
            do="prepare", name=case.name, environment=case.environment, case=case.document,
            slow=self.slow,
        )  # fmt: skip
        found = answer["outcome"]
        outcome = Outcome(found["gas_used"], found["output"], found["success"])
        return Prepared(outcome, answer["seconds"], found.get("warm_slots", False))

    def time(self, case: Case, runs: int) -> float:
        """Returns the thread CPU seconds of a number of runs."""
        return float(self.ask(do="time", name=case.name, runs=runs)["seconds"])

    def close(self) -> None:
        """Ends the worker."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()


@dataclass(frozen=True, slots=True)
class PeerKind:
    """Describes a peer: where its environment may be, and the module that runs cases there."""

    name: str
    module: str
    requirement: str
    slow: bool  # runs the shorter form of a case; the time is scaled by gas

    def python(self) -> Path | None:
        """Returns the peer's Python: FASTEVM_PEER_<NAME>, or the one in the folder .venv-<name>."""
        chosen = os.environ.get("FASTEVM_PEER_" + self.name.upper().replace("-", "_"))
        inside = Path(f".venv-{self.name}") / "bin" / "python"
        path = Path(chosen) if chosen else found_first(inside, ROOT / inside)
        return path if path.exists() else None

    def start(self) -> Peer:
        """Starts the peer's worker. Raises PeerError if the environment is missing."""
        python = self.python()
        if python is None:
            raise PeerError(f"no environment .venv-{self.name} with {self.requirement!r} in it")
        return Peer(self.name, self.module, python, self.slow)


@dataclass(frozen=True, slots=True)
class CompiledKind:
    """A peer in Go or Rust, which `python -m fastevm.bench.peers` builds."""

    name: str
    program: str

    def start(self) -> Peer:
        """Starts the peer's program. Raises PeerError if the program is not built."""
        try:
            path = PROGRAMS[self.program].found()
        except NotBuilt as reason:
            raise PeerError(str(reason)) from reason
        return Peer(self.name, "", path, slow=False, command=[path, "bench"])


PEER_KINDS = (
    PeerKind("pyrevm", "on_pyrevm", "pyrevm>=0.3,<0.4", slow=False),
    PeerKind("py-evm", "on_py_evm", "py-evm", slow=True),
)
COMPILED_KINDS = (CompiledKind("geth", "on-geth"), CompiledKind("revm", "on-revm"))


def start(names: list[str]) -> tuple[list[Engine], dict[str, str]]:
    """Starts the named engines.

    Returns the engines that started, and the reasons why others did not.
    """
    engines: list[Engine] = [Fastevm()]
    missing: dict[str, str] = {}
    for kind in (*PEER_KINDS, *COMPILED_KINDS):
        if kind.name not in names:
            continue
        try:
            engines.append(kind.start())
        except (PeerError, OSError) as error:
            missing[kind.name] = str(error)
    return engines, missing


def python_version() -> str:
    """Returns the version of the Python that runs fastevm."""
    return sys.version.split()[0]
