"""EIP-4399: opcode 0x44 gives randomness instead of the difficulty."""

from fastevm.spec.schedule import schedule_for

from .support import introduced, parameter


def test_came_with_paris():
    assert introduced(4399) == "Paris"
    assert parameter("difficulty_is_randomness") == {"Frontier": False, "Paris": True}


def test_both_names_are_the_same_opcode_at_the_same_price():
    for fork in ("london", "paris"):
        assert schedule_for(fork).packed()["gas"][0x44] == 2
        assert schedule_for(fork).gas("DIFFICULTY") == schedule_for(fork).gas("PREVRANDAO") == 2
