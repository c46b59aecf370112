"""Tests eth_feeHistory up to the pending block, with and without slices."""

from collections.abc import Callable

import pytest

from fastevm.bench.node.launch import ServerThread, wait_for
from fastevm.node import Mining, Node, dev_node
from tests.max_wait import MAX_WAIT


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(dev_node, id="slices"),
        pytest.param(lambda: dev_node(mining=Mining.MANUAL, op_fork="jovian"), id="op"),
        pytest.param(lambda: dev_node(mining=Mining.MANUAL), id="manual"),
        pytest.param(lambda: dev_node(mining=Mining.INSTANT), id="instant"),
    ],
)
def test_the_newest_entry_is_the_pending_block(make: Callable[[], Node]) -> None:
    with ServerThread(make()) as server, server.client() as client:

        def answers() -> bool:
            """Asserts the pending fees.

            Returns False if a new block makes the answers incomparable.
            """
            before = client.call("eth_getBlockByNumber", "pending", False)
            history = client.call("eth_feeHistory", 1, "pending", [50])
            after = client.call("eth_getBlockByNumber", "pending", False)
            if before["number"] != after["number"]:
                return False
            assert history["oldestBlock"] == before["number"]
            assert history["baseFeePerGas"][0] == before["baseFeePerGas"]
            assert len(history["baseFeePerGas"]) == 2
            assert history["reward"] == [["0x0"]]
            return True

        wait_for(answers, MAX_WAIT, "blocks are built too fast")
