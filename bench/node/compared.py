"""Starts the compared nodes, fastevm and anvil, as processes on the loopback interface.

anvil is a binary in the npm package `@foundry-rs/anvil`, which npm installs on first use. Without
npm, anvil is skipped with a message.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from fastevm.bench.node.launch import NodeProcess
from fastevm.bench.node.load import Load, LoadError, cpu_seconds
from fastevm.bench.options import ROOT
from fastevm.node.dev_accounts import dev_accounts
from fastevm.node.from_genesis import dev_genesis
from fastevm.node.node import PRELOAD_SECONDS

ANVIL_VERSION: Final = "1.7.1"
ANVIL_PACKAGE: Final = f"@foundry-rs/anvil@{ANVIL_VERSION}"
INSTALL_SECONDS: Final = 120.0
# from the start of a node until it preloads the KZG setup
OWN_WORK_SECONDS: Final = PRELOAD_SECONDS + 0.5
SETTLE_SECONDS: Final = 20.0
SETTLED_SECONDS: Final = 0.4  # seconds for which a node must be idle
IDLE_SHARE: Final = 0.1  # share of a core; a node that uses less is idle
GAS_LIMIT: Final = 1_000_000_000  # per block on both nodes, so that gas is never scarce
BLOCK_TIME: Final = 2  # seconds, on both nodes with interval mining
CHAIN_ID: Final = 31_337


class ComparedNode(NodeProcess):
    """A running node. ``started_in``: seconds from its start to its first response.

    Raises LoadError if the node does not start.
    """

    def __init__(self, name: str, command: Sequence[str]) -> None:
        super().__init__(command)
        self.name = name
        try:
            self.started_in = self.start()
        except (RuntimeError, TimeoutError) as error:
            raise LoadError(f"{name}: {error}") from None
        self.answered = time.monotonic()
        try:
            self.memory_at_start = self.memory()
            self.version = str(self.ask("web3_clientVersion"))
        except BaseException:
            self.kill()
            raise

    def load(self, connections: int) -> Load:
        """Opens connections to the node."""
        return Load(self.port, self.pid, connections)

    def settle(self) -> None:
        """Waits until the node has preloaded its KZG trusted setup."""
        time.sleep(max(0.0, self.answered + OWN_WORK_SECONDS - time.monotonic()))
        deadline = time.monotonic() + SETTLE_SECONDS
        while time.monotonic() < deadline:
            before = cpu_seconds(self.pid)
            time.sleep(SETTLED_SECONDS)
            if cpu_seconds(self.pid) - before < IDLE_SHARE * SETTLED_SECONDS:
                return


def start_fastevm(*options: str) -> ComparedNode:
    """Returns a development node with large blocks every two seconds."""
    genesis = dev_genesis(dev_accounts(10), chain_id=CHAIN_ID) | {"gasLimit": hex(GAS_LIMIT)}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(genesis, file)
        file.flush()
        command = [sys.executable, "-m", "fastevm.rpc", "-q", "--genesis", file.name]
        command += ["--block-time", f"{BLOCK_TIME}s", *options]
        return ComparedNode("fastevm", command)


def start_anvil(*options: str) -> ComparedNode:
    """Returns anvil with the same accounts. Raises LoadError if it is not available."""
    command = [str(anvil_binary()), "--chain-id", str(CHAIN_ID)]
    command += ["--gas-limit", str(GAS_LIMIT), "--silent", *options]
    return ComparedNode("anvil", command)


def anvil_folder() -> Path:
    """Returns npm's folder of anvil: build/anvil of the repository, or the user's cache."""
    if (ROOT / "setup.py").exists():
        return ROOT / "build" / "anvil"
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "fastevm" / "anvil"


def anvil_binary() -> Path:
    """Returns anvil's path; installs anvil if necessary. Raises LoadError with the reason."""
    chosen = os.environ.get("FASTEVM_PEER_ANVIL")
    folder = anvil_folder()
    program = Path(chosen) if chosen else folder / "node_modules" / ".bin" / "anvil"
    if program.exists():
        return direct(program)
    npm = shutil.which("npm")
    if npm is None:
        raise LoadError("npm is missing, with which it is installed")
    command = [npm, "install", "--no-fund", "--no-audit", "--prefix", str(folder)]
    done = subprocess.run(
        [*command, ANVIL_PACKAGE], capture_output=True, text=True, timeout=INSTALL_SECONDS,
        check=False,
    )  # fmt: skip
    if done.returncode or not program.exists():
        raise LoadError(f"npm could not install {ANVIL_PACKAGE}: {done.stderr[-300:]}")
    return direct(program)


def direct(program: Path) -> Path:
    """Returns the binary that npm's script starts, so that the process id belongs to the node."""
    found = sorted(program.resolve().parents[1].glob("anvil-*/bin/anvil*"))
    return found[0] if found else program
