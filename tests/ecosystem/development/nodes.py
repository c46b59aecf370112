"""The nodes that clients are tried on: anvil, and fastevm in the ways it can be started."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from fastevm.bench.node.compared import anvil_binary
from fastevm.bench.node.launch import NodeProcess, fastevm_node

OURS: Final = "fastevm dev"
BASELINE: Final = "anvil"


def anvil(*options: str) -> NodeProcess:
    """Returns an anvil that is not started. LoadError where npm cannot bring it."""
    return NodeProcess([str(anvil_binary()), *options])


def dev(*options: str) -> NodeProcess:
    """Returns a development node of this build that is not started."""
    return fastevm_node(*options, module=("fastevm", "dev"))


NODES: Final[dict[str, Callable[..., NodeProcess]]] = {BASELINE: anvil, OURS: dev}


@contextmanager
def running(node: NodeProcess) -> Iterator[NodeProcess]:
    """Provides the node, started, and ended afterwards."""
    node.start()
    try:
        yield node
    finally:
        node.kill()
