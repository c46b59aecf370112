"""EIP-4788: Beacon block root in the EVM.

A header has the root of the parent beacon block. A contract serves the last 8,191 roots.
"""

from fastevm.chain.system_contracts import BEACON_ROOTS, BEACON_ROOTS_CODE

from .support import (
    before_and_after,
    build,
    chain_across,
    grow,
    machine,
    refused_block,
    with_header,
)

BEFORE, AFTER = before_and_after(4788)
ROOT = b"\x0b" * 32
DEPLOYED = {BEACON_ROOTS: {"code": BEACON_ROOTS_CODE}}


def root_at(chain, fork, timestamp):
    """Asks the contract for the root at a timestamp. Returns it, or None if the call reverts."""
    layer = chain.layer_of(chain.head.hash)
    result = machine(fork, state=layer).call(BEACON_ROOTS, timestamp.to_bytes(32, "big"))
    return result.output if result.success else None


def test_the_root_is_stored_at_the_start_of_a_block():
    chain = chain_across(4788, DEPLOYED)
    grow(chain)
    assert root_at(chain, BEFORE, 12) is None
    grow(chain, parent_beacon_block_root=ROOT)
    assert root_at(chain, AFTER, 24) == ROOT
    assert root_at(chain, AFTER, 23) is None
    grow(chain, parent_beacon_block_root=b"\x0c" * 32)
    assert (root_at(chain, AFTER, 24), root_at(chain, AFTER, 36)) == (ROOT, b"\x0c" * 32)


def test_the_call_is_the_protocol_s_own_and_uses_no_gas_of_the_block():
    chain = chain_across(4788, DEPLOYED)
    grow(chain)
    assert grow(chain, parent_beacon_block_root=ROOT).header.gas_used == 0


def test_the_header_has_the_root_from_then_on():
    chain = chain_across(4788, DEPLOYED)
    before = build(chain)[0]
    assert before.header.parent_beacon_block_root is None
    chain.add(before)
    after = build(chain, parent_beacon_block_root=ROOT)[0]
    assert (
        refused_block(chain, with_header(after, parent_beacon_block_root=bytes(32))) == "state_root"
    )
    chain.add(after)


def test_without_the_contract_the_block_is_valid_and_nothing_is_stored():
    chain = chain_across(4788)
    grow(chain, 2)
    assert chain.layer_of(chain.head.hash).account(BEACON_ROOTS) is None
