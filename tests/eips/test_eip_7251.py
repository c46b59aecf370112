"""EIP-7251: consolidations of validators."""

from .support import changes, introduced


def test_came_with_prague():
    assert introduced(7251) == "Prague"
    address = bytes.fromhex("0000bbddc7ce488642fb579f8b00f3a590007251")
    found = changes(lambda s: s.system_contracts.get("CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS"))
    assert found == {"Frontier": None, "Prague": address}
