"""EIP-7883: MODEXP becomes dearer."""

from .support import introduced, parameter


def test_came_with_osaka():
    assert introduced(7883) == "Osaka"
    expected = {"Frontier": 0, "Byzantium": 1, "Berlin": 2, "Osaka": 3}
    assert parameter("modexp_version") == expected
