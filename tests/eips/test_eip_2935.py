"""EIP-2935: old block hashes are served from the state."""

from .support import changes, introduced, parameter


def test_came_with_prague():
    assert introduced(2935) == "Prague"
    assert parameter("has_history_contract") == {"Frontier": False, "Prague": True}
    address = bytes.fromhex("0000f90827f1c53a10cb7a02335b175320002935")
    found = changes(lambda s: s.system_contracts.get("HISTORY_STORAGE_ADDRESS"))
    assert found == {"Frontier": None, "Prague": address}


def test_blockhash_itself_reaches_as_far_as_before():
    assert parameter("block_hash_window") == {"Frontier": 256}
