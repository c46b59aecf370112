"""Starts anvil for tests that compare a node with it."""

from pathlib import Path

import pytest

from fastevm.bench.node.compared import anvil_binary
from fastevm.bench.node.launch import NodeProcess
from fastevm.bench.node.load import LoadError


def anvil_or_skip() -> Path:
    """Returns anvil's path. Skips the test if anvil cannot be installed."""
    try:
        return anvil_binary()
    except LoadError as fault:
        pytest.skip(f"anvil cannot be had: {fault}")


def anvil_process(*options: str) -> NodeProcess:
    """Returns a quiet anvil process, not started. Skips the test if anvil cannot be installed."""
    return NodeProcess([str(anvil_or_skip()), "--silent", *options])
