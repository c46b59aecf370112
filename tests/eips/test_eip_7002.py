"""EIP-7002: withdrawals that the execution layer asks for."""

from .support import changes, introduced


def test_came_with_prague():
    assert introduced(7002) == "Prague"
    address = bytes.fromhex("00000961ef480eb55e80d19ad83579a64c007002")
    found = changes(lambda s: s.system_contracts.get("WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS"))
    assert found == {"Frontier": None, "Prague": address}
