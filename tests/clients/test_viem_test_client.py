"""Tests every action of viem's test client on a development node."""

import pytest

from fastevm.rpc_client.blocking import call_once

from .conftest import running_node
from .test_javascript import needs_javascript, reported

ACTIONS = 32  # 30 actions, mining with an interval, and fees of both kinds
DEV = ("fastevm", "dev")


@needs_javascript
@pytest.mark.parametrize("mode", ["anvil", "hardhat"])
def test_every_action_in_a_mode(mode: str) -> None:
    with running_node(module=DEV) as node, running_node(module=DEV) as upstream:
        call_once(upstream, "anvil_mine", "0x5")
        found = reported("viem_test", node, 0, mode, upstream)
    assert {name: error for name, error in found.items() if error is not None} == {}
    assert len(found) == ACTIONS
