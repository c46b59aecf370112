"""Tests which modules a node loads before its first answer."""

import subprocess
import sys

import pytest

from tests.max_wait import MAX_WAIT

# Packages that a node needs later or never; each takes milliseconds to load.
UNUSED = {
    "aiohttp", "eth_account", "rich", "websockets", "numpy",
    "fastevm.conformance", "fastevm.payments",
}  # fmt: skip

# Prints the loaded modules once the listener is open.
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
    """Returns the modules of a node that has just opened its listener."""
    program = START.format(command=command)
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=MAX_WAIT,
        check=True,
    )
    return set(done.stdout.split())


@pytest.mark.parametrize("command", ["dev", "node"])
def test_a_node_starts_without_packages_that_it_needs_later(command: str) -> None:
    assert not UNUSED & loaded(command)
