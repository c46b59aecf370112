"""EIP-100: the difficulty follows the mean block time including uncles."""

from .support import introduced, parameter


def test_came_with_byzantium():
    assert introduced(100) == "Byzantium"
    assert parameter("difficulty_version") == {"Frontier": 0, "Homestead": 1, "Byzantium": 2}
