"""EIP-3541: no new contract code starts with the byte 0xef."""

from .support import introduced, parameter


def test_came_with_london():
    assert introduced(3541) == "London"
    assert parameter("rejects_code_starting_ef") == {"Frontier": False, "London": True}
