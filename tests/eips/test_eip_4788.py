"""EIP-4788: the parent beacon block root is in the EVM."""

from .support import changes, introduced, parameter


def test_came_with_cancun():
    assert introduced(4788) == "Cancun"
    assert parameter("has_beacon_root") == {"Frontier": False, "Cancun": True}
    address = bytes.fromhex("000f3df6d732807ef1319fb7b8bb8522d0beac02")
    found = changes(lambda s: s.system_contracts.get("BEACON_ROOTS_ADDRESS"))
    assert found == {"Frontier": None, "Cancun": address}


def test_the_protocols_own_call_has_30_million_gas():
    assert parameter("system_call_gas") == {"Frontier": 0, "Cancun": 30_000_000}
