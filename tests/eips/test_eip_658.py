"""EIP-658: receipts hold a status instead of a state root."""

from .support import introduced, parameter


def test_came_with_byzantium():
    assert introduced(658) == "Byzantium"
    assert parameter("receipt_has_state_root") == {"Frontier": True, "Byzantium": False}
