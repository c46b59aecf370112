"""Tests the issuance of a block in Otterscan's format."""

from fastevm.core.execution.types import Block, Header
from fastevm.core.spec.schedule import schedule_for
from fastevm.rpc_types.blocks import issuance_json

ETHER = 10**18


def test_a_mined_block_issues_rewards() -> None:
    block = Block(Header(number=10), ommers=(Header(number=9), Header(number=8)))
    assert issuance_json(block, schedule_for("byzantium")) == {
        "blockReward": hex(3 * ETHER + 2 * 3 * ETHER // 32),
        "uncleReward": hex((7 + 6) * 3 * ETHER // 8),
        "issuance": hex(3 * ETHER + 2 * 3 * ETHER // 32 + 13 * 3 * ETHER // 8),
    }


def test_a_proposed_block_issues_nothing() -> None:
    found = issuance_json(Block(Header(number=10)), schedule_for("osaka"))
    assert set(found.values()) == {"0x0"}
