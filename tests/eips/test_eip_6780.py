"""EIP-6780: SELFDESTRUCT destroys only contracts of the same transaction."""

from fastevm.spec.schedule import schedule_for

from .support import introduced, parameter


def test_came_with_cancun_and_changed_no_price():
    assert introduced(6780) == "Cancun"
    assert parameter("selfdestruct_only_if_created") == {"Frontier": False, "Cancun": True}
    assert schedule_for("shanghai").gas("SELFDESTRUCT") == schedule_for("cancun").gas(
        "SELFDESTRUCT"
    )
