"""EIP-3675: proof of stake; no reward, no uncles, no difficulty."""

from fastevm.spec.activation import MAINNET
from fastevm.spec.schedule import schedule_for

from .support import introduced, parameter


def test_came_with_paris():
    assert introduced(3675) == "Paris"
    assert parameter("proof_of_stake") == {"Frontier": False, "Paris": True}
    assert schedule_for("paris").parameters["block_reward_gwei"] == 0


def test_begins_by_total_difficulty_and_not_by_number():
    assert MAINNET.terminal_total_difficulty == 58_750 * 10**18
    assert not MAINNET.at(15_537_394, 0, after_merge=False).parameters["proof_of_stake"]
    assert MAINNET.at(15_537_394, 0, after_merge=True).parameters["proof_of_stake"]
