"""EIP-2935: Serve historical block hashes from state.

A contract serves the hashes of the last 8,191 blocks. BLOCKHASH still serves 256.
"""

from fastevm.chain.system_contracts import HISTORY_STORAGE, HISTORY_STORAGE_CODE

from .support import before_and_after, chain_across, grow, machine, top

BEFORE, AFTER = before_and_after(2935)
DEPLOYED = {HISTORY_STORAGE: {"code": HISTORY_STORAGE_CODE}}


def served(chain, fork, number):
    """Asks the contract in the block after the head. Returns the hash, or None if it reverts."""
    head = chain.head
    evm = machine(fork, state=chain.layer_of(head.hash), number=head.number + 1)
    result = evm.call(HISTORY_STORAGE, number.to_bytes(32, "big"))
    return result.output if result.success else None


def test_the_parent_s_hash_is_stored_at_the_start_of_a_block():
    chain = chain_across(2935, DEPLOYED)
    first = grow(chain)
    assert served(chain, BEFORE, 0) == bytes(32)
    second = grow(chain)
    assert second.header.gas_used == 0
    assert served(chain, AFTER, 0) == bytes(32)
    assert served(chain, AFTER, 1) == first.hash
    grow(chain)
    assert served(chain, AFTER, 2) == second.hash


def test_blocks_to_come_are_refused():
    chain = chain_across(2935, DEPLOYED)
    grow(chain, 3)
    assert served(chain, AFTER, 4) is None


def test_it_reaches_further_than_blockhash():
    chain = chain_across(2935, DEPLOYED)
    second = grow(chain, 2)
    grow(chain, 257)
    hashes = chain.ancestors(chain.head.hash)
    block = {"number": chain.head.number + 1, "block_hashes": hashes}
    assert len(hashes) == 256
    for fork in (BEFORE, AFTER):
        assert top(fork, "2 BLOCKHASH", **block) == 0
        assert top(fork, "258 BLOCKHASH", **block) == int.from_bytes(hashes[1], "big")
    assert served(chain, AFTER, 2) == second.hash


def test_without_the_contract_the_block_is_valid_and_nothing_is_stored():
    chain = chain_across(2935)
    grow(chain, 2)
    assert chain.layer_of(chain.head.hash).account(HISTORY_STORAGE) is None
