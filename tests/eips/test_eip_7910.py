"""EIP-7910: eth_config JSON-RPC Method.

A node returns its current and next fork, with blobs, precompiles, system contracts and fork
identifiers.
"""

from types import SimpleNamespace

from fastevm.rpc.methods.config import fork_configuration

from .support import before_and_after, chain_across, grow

BEFORE, AFTER = before_and_after(7910)


def configuration(chain):
    return fork_configuration(
        SimpleNamespace(node=SimpleNamespace(chain=chain, config=chain.config))
    )


def test_the_next_fork_becomes_the_current_one():
    chain = chain_across(7910)
    grow(chain)
    before = configuration(chain)
    assert (before["current"]["activationTime"], before["next"]["activationTime"]) == (0, 24)
    assert before["next"] == before["last"]
    grow(chain)
    after = configuration(chain)
    assert after["current"] == before["next"]
    assert after["next"] is after["last"] is None


def test_it_tells_what_the_forks_bring():
    chain = chain_across(7910)
    found = configuration(chain)
    before, after = found["current"], found["next"]
    assert "P256VERIFY" not in before["precompiles"]
    assert int(after["precompiles"]["P256VERIFY"], 16) == 0x100
    assert before["precompiles"].items() < after["precompiles"].items()
    assert before["forkId"] != after["forkId"]
    assert before["systemContracts"] == after["systemContracts"]
    assert "HISTORY_STORAGE_ADDRESS" in before["systemContracts"]
    assert before["blobSchedule"]["max"] == 9
