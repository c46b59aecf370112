"""Irregular state changes: changes before the transactions of a fork's first block."""

from __future__ import annotations

from fastevm.chain.create2_deployer import deploy_create2_deployer
from fastevm.chain.dao_fork import apply_dao_fork
from fastevm.core.execution.op_stack.base_time import with_base_time
from fastevm.core.execution.types import Header
from fastevm.core.spec.activation import Activations
from fastevm.core.state.layer import Layer


def state_before(activations: Activations, layer: Layer, parent: Header, timestamp: int) -> Layer:
    """Returns the state in which a child of ``parent`` at ``timestamp`` (seconds) starts.

    ``layer``: the state after ``parent``. The DAO fork moves balances (EIP-779). Canyon (OP Stack)
    deploys Create2Deployer. Denim (Base) deploys the code of BaseTime. Raises InvalidBlock if the
    state cannot have that code.
    """
    if parent.number + 1 == activations.dao_block:
        layer = apply_dao_fork(layer)
    canyon = activations.canyon_time
    if canyon is not None and parent.timestamp < canyon <= timestamp:
        layer = deploy_create2_deployer(layer)
    denim = activations.denim_time
    if denim is not None and timestamp >= denim:
        layer = with_base_time(layer, parent.number + 1)
    return layer
