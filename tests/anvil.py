"""anvil, for tests that compare a node with it."""

from pathlib import Path

import pytest

from fastevm.bench.node.compared import anvil_binary
from fastevm.bench.node.launch import NodeProcess
from fastevm.bench.node.load import LoadError


def anvil_or_skip() -> Path:
    """Returns the program; skips the test where it cannot be had."""
    try:
        return anvil_binary()
    except LoadError as fault:
        pytest.skip(f"anvil cannot be had: {fault}")


def anvil_process(*options: str) -> NodeProcess:
    """Returns a node of anvil that says nothing, not started yet; skips the test where there is
    none.
    """
    return NodeProcess([str(anvil_or_skip()), "--silent", *options])
