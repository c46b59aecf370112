"""Tests `fastevm dev --increasing-timestamps`: every block is later than its parent."""

import pytest

from fastevm.integrations.local_node import LocalNode, NodeError


def timestamps(node: LocalNode) -> list[int]:
    """Returns the timestamps of all blocks, in seconds."""
    newest = int(node.request("eth_blockNumber"), 16)
    blocks = [node.request("eth_getBlockByNumber", [hex(n), False]) for n in range(newest + 1)]
    return [int(block["timestamp"], 16) for block in blocks]


def build(node: LocalNode) -> None:
    """Builds blocks in every way in which the node chooses the timestamp, within seconds."""
    account = node.request("eth_accounts")[0]
    for _ in range(3):
        node.request("evm_mine")
        node.request("eth_sendTransaction", [{"from": account, "to": account}])
    node.request("anvil_mine", ["0x3", "0x0"])


def test_blocks_of_one_second_have_increasing_timestamps() -> None:
    with LocalNode(increasing_timestamps=True) as node:
        build(node)
        found = timestamps(node)
        assert len(found) == 10
        assert found == sorted(set(found))
        ahead = found[-1] + 1_000
        node.request("evm_setNextBlockTimestamp", [ahead])
        build(node)
        assert timestamps(node)[10:] == [ahead + n for n in range(9)]
        with pytest.raises(NodeError, match=f"timestamp {ahead + 8} is not after"):
            node.request("evm_setNextBlockTimestamp", [ahead + 8])


def test_without_the_option_blocks_share_a_second() -> None:
    with LocalNode() as node:
        ahead = timestamps(node)[0] + 1_000
        node.request("evm_setNextBlockTimestamp", [ahead])
        node.request("anvil_mine", ["0x2", "0x0"])
        node.request("evm_setNextBlockTimestamp", [ahead])
        node.request("evm_mine")
        assert timestamps(node)[1:] == [ahead, ahead, ahead]
