"""EIP-3860: init code is limited and metered."""

from fastevm.spec.schedule import schedule_for

from .support import introduced, parameter


def test_came_with_shanghai():
    assert introduced(3860) == "Shanghai"
    assert parameter("create_word_cost") == {"Frontier": 0, "Shanghai": 2}


def test_init_code_may_be_twice_as_long_as_code():
    shanghai = schedule_for("shanghai").parameters
    assert shanghai["max_initcode_size"] == 2 * shanghai["max_code_size"] == 49_152
    assert schedule_for("paris").parameters["max_initcode_size"] == 0
