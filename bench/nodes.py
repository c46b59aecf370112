"""The nodes that are compared: fastevm's own and anvil, as processes on the loopback interface.

anvil is a binary inside the npm package `@foundry-rs/anvil`; npm puts it into build/anvil the first
time, and without npm it is left out with a word.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fastevm.bench.load import HOST, Load, LoadError, cpu_seconds
from fastevm.node.dev_accounts import dev_accounts
from fastevm.node.from_genesis import dev_genesis
from fastevm.node.node import PRELOAD_SECONDS

ROOT: Final = Path(__file__).parents[1]
ANVIL_VERSION: Final = "1.7.1"
ANVIL_PACKAGE: Final = f"@foundry-rs/anvil@{ANVIL_VERSION}"
ANVIL_PLACE: Final = ROOT / "build" / "anvil"
INSTALL_SECONDS: Final = 120.0
START_SECONDS: Final = 30.0
STOP_SECONDS: Final = 10.0
LOOK_EVERY: Final = 0.005  # seconds between attempts to reach a node that starts
OWN_WORK_SECONDS: Final = PRELOAD_SECONDS + 0.5  # until it has begun with what it does on its own
SETTLE_SECONDS: Final = 20.0
SETTLED_SECONDS: Final = 0.4  # without work of its own
IDLE_SHARE: Final = 0.1  # of a core, that an idle node may use
GAS_LIMIT: Final = 1_000_000_000  # of a block, on both: gas is not what is measured
BLOCK_TIME: Final = 2  # seconds, on both where blocks come by the clock
CHAIN_ID: Final = 31_337


@dataclass(slots=True)
class NodeProcess:
    """A node that runs. ``started_in``: seconds from its start to its first answer."""

    name: str
    version: str
    process: subprocess.Popen[bytes]
    port: int
    started_in: float
    memory_at_start: int
    answered: float = field(default_factory=time.monotonic)  # for the first time

    @property
    def pid(self) -> int:
        """Its process."""
        return self.process.pid

    def memory(self) -> int:
        """Resident bytes."""
        return resident(self.pid)

    def load(self, connections: int) -> Load:
        """Connections to it."""
        return Load(self.port, self.pid, connections)

    def settle(self) -> None:
        """Wait until it has done what it begins with on its own (loading a trusted setup)."""
        time.sleep(max(0.0, self.answered + OWN_WORK_SECONDS - time.monotonic()))
        deadline = time.monotonic() + SETTLE_SECONDS
        while time.monotonic() < deadline:
            before = cpu_seconds(self.pid)
            time.sleep(SETTLED_SECONDS)
            if cpu_seconds(self.pid) - before < IDLE_SHARE * SETTLED_SECONDS:
                return

    def stop(self) -> None:
        """End it."""
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def resident(pid: int) -> int:
    """Resident bytes of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def free_port() -> int:
    """A port that nobody uses now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def launch(name: str, command: list[str], port: int) -> NodeProcess:
    """Start a node and wait for its first answer. LoadError if it does not come."""
    started = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, env=os.environ | {"PYTHONPATH": str(ROOT)}
    )
    while time.perf_counter() - started < START_SECONDS:
        try:
            load = Load(port, process.pid, 1)
        except OSError:
            if process.poll() is not None:
                raise LoadError(f"{name} ended with code {process.returncode}") from None
            time.sleep(LOOK_EVERY)
            continue
        try:
            load.ask("eth_blockNumber")
            took = time.perf_counter() - started
            version = str(load.ask("web3_clientVersion"))
        finally:
            load.close()
        return NodeProcess(name, version, process, port, took, resident(process.pid))
    process.kill()
    raise LoadError(f"{name} gave no answer in {START_SECONDS:g} s")


def start_fastevm(*options: str) -> NodeProcess:
    """A development node with large blocks every two seconds."""
    port = free_port()
    genesis = dev_genesis(dev_accounts(10), chain_id=CHAIN_ID) | {"gasLimit": hex(GAS_LIMIT)}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(genesis, file)
        file.flush()
        command = [
            sys.executable,
            "-m",
            "fastevm.rpc",
            "--port",
            str(port),
            "-q",
            "--genesis",
            file.name,
        ]
        return launch("fastevm", [*command, "--block-time", str(BLOCK_TIME * 1000), *options], port)


def start_anvil(*options: str) -> NodeProcess:
    """anvil on the same accounts. LoadError where it cannot be had."""
    port = free_port()
    command = [str(anvil_binary()), "--port", str(port), "--chain-id", str(CHAIN_ID)]
    command += ["--gas-limit", str(GAS_LIMIT), "--silent", *options]
    return launch("anvil", command, port)


def anvil_binary() -> Path:
    """The program, installed if need be. LoadError says why there is none."""
    chosen = os.environ.get("FASTEVM_PEER_ANVIL")
    program = Path(chosen) if chosen else ANVIL_PLACE / "node_modules" / ".bin" / "anvil"
    if program.exists():
        return direct(program)
    npm = shutil.which("npm")
    if npm is None:
        raise LoadError("npm is missing, with which it is installed")
    command = [npm, "install", "--no-fund", "--no-audit", "--prefix", str(ANVIL_PLACE)]
    done = subprocess.run(
        [*command, ANVIL_PACKAGE], capture_output=True, text=True, timeout=INSTALL_SECONDS,
        check=False,
    )  # fmt: skip
    if done.returncode or not program.exists():
        raise LoadError(f"npm could not install {ANVIL_PACKAGE}: {done.stderr[-300:]}")
    return direct(program)


def direct(program: Path) -> Path:
    """The binary itself where npm put a script around it, so that its process is the node's."""
    found = sorted(program.resolve().parents[1].glob("anvil-*/bin/anvil*"))
    return found[0] if found else program
