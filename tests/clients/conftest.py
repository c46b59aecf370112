"""A development node in a process of its own, as any client finds it."""

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
START_LIMIT = 10.0  # seconds


@pytest.fixture(scope="module", params=["preconf", "geth"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a node with short blocks, once in each dialect."""
    command = [sys.executable, "-m", "fastevm", "node", "--port", "0", "--block-time", "300"]
    command += ["--slice-interval", "50", "--dialect", request.param]
    node = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert node.stdout is not None
        started = time.monotonic()
        found = None
        while found is None:
            assert time.monotonic() - started < START_LIMIT
            found = re.search(r"Listening on (\S+)", node.stdout.readline())
        yield f"http://{found[1]}"
    finally:
        node.terminate()
        assert node.wait(10) == 0
