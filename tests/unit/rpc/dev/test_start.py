"""What a node has loaded when it first answers: every module takes from its start.

Wall time would depend on the machine; ``tests/ecosystem/development/speed.py`` measures it.
"""

import subprocess
import sys

import pytest

MODULES = {"dev": 359, "node": 357}
"""How many modules of fastevm may be loaded: a few more than are."""

# Of what a node needs later or never. Each of the first row takes milliseconds to load.
UNUSED = {
    "aiohttp", "eth_account", "email.utils", "importlib.resources", "rich", "sqlite3", "tomllib",
    "websockets", "zipfile", "brotli", "bz2", "ctypes", "difflib", "encodings.idna", "lzma",
    "random", "secrets", "shutil", "tempfile", "fastevm.node.saved_state",
    "fastevm.chains.registry", "fastevm.conformance", "fastevm.fork.remote_source",
    "fastevm.node.forked.partial_follower", "fastevm.node.forked.transaction_state",
    "fastevm.payments", "fastevm.simulate.api", "fastevm.stateless.verification",
    "fastevm.sync.service", "fastevm.tracing.blocks", "fastevm.tracing.tracers",
}  # fmt: skip

# Prints what is loaded once the listener is open.
START = """
import os, sys
from fastevm.__main__ import main as command
from fastevm.rpc.transport.server import Server

start = Server.start

async def started(self):
    await start(self)
    print("\\n".join(sys.modules), flush=True)
    os._exit(0)

Server.start = started
command([{command!r}, "-q", "--port", "0"])
"""


def loaded(command: str) -> set[str]:
    """The modules of a node that has just opened its listener."""
    program = START.format(command=command)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    return set(done.stdout.split())


@pytest.mark.parametrize("command", MODULES)
def test_a_node_loads_what_it_needs(command: str) -> None:
    modules = loaded(command)
    needless = UNUSED & modules - (
        {"fastevm.chains.registry", "lzma"} if command == "node" else set()
    )
    assert not needless
    own = [name for name in modules if name.partition(".")[0] == "fastevm"]
    assert len(own) <= MODULES[command], f"{len(own)} modules"
