"""EIP-1153: transient storage."""

from fastevm.spec.schedule import schedule_for

from .support import introduced, price


def test_came_with_cancun_at_the_price_of_a_warm_read():
    assert introduced(1153) == "Cancun"
    assert price("TLOAD") == price("TSTORE") == {"Frontier": None, "Cancun": 100}
    assert schedule_for("cancun").gas("SLOAD") == 100
