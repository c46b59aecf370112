"""EIP-2565: MODEXP is priced closer to its work."""

from .support import introduced, parameter


def test_came_with_berlin():
    assert introduced(2565) == "Berlin"
    assert parameter("modexp_version")["Berlin"] == 2
