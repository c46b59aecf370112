"""Starts the nodes that clients are tested on: anvil, and fastevm in several configurations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from fastevm.bench.node.compared import anvil_binary
from fastevm.bench.node.launch import NodeProcess, fastevm_node

OURS: Final = "fastevm dev"
BASELINE: Final = "anvil"


def anvil(*options: str) -> NodeProcess:
    """Returns an anvil process, not started. Raises LoadError if npm cannot install anvil."""
    return NodeProcess([str(anvil_binary()), *options])


def dev(*options: str) -> NodeProcess:
    """Returns a process of this build's `fastevm dev`, not started."""
    return fastevm_node(*options, module=("fastevm", "dev"))


NODES: Final[dict[str, Callable[..., NodeProcess]]] = {BASELINE: anvil, OURS: dev}


@contextmanager
def running(node: NodeProcess) -> Iterator[NodeProcess]:
    """Runs the node within the ``with`` statement."""
    node.start()
    try:
        yield node
    finally:
        node.kill()
