"""EIP-4844: Shard blob transactions.

A transaction of type 3 has the versioned hashes of blobs. Blob gas has a separate limit, target and
fee. Contracts can read the hashes, and a precompile verifies a point of a blob.
"""

from hashlib import sha256

import pytest

from fastevm import blob_base_fee
from fastevm.core.spec.schedule import schedule_for

from .support import (
    BLOB_GAS,
    BLOB_HASHES,
    CONTRACT,
    INVALID_OPCODE,
    SENDER,
    before_and_after,
    blob_payment,
    build,
    call_precompile,
    chain_across,
    cost,
    grow,
    machine,
    payment,
    refusal,
    refused_block,
    run,
    with_header,
)

BEFORE, AFTER = before_and_after(4844)
POINT_EVALUATION = 0x0A


def test_the_type_is_new_and_carries_one_to_six_blobs():
    assert refusal(BEFORE, blob_payment(1)) == "type_not_supported"
    found = [refusal(AFTER, blob_payment(count)) for count in (0, 1, 6, 7)]
    assert found == ["no_blobs", None, None, "too_many_blobs"]
    unknown = blob_payment(blob_versioned_hashes=[b"\x02" * 32])
    assert refusal(AFTER, unknown) == "blob_hash_version"


def test_blob_gas_is_paid_at_its_own_fee_and_burned():
    evm = machine(AFTER, blob_base_fee=3)
    had = evm.balance(SENDER)
    evm.execute(blob_payment(2, max_fee_per_gas=0))
    assert had - evm.balance(SENDER) == 2 * BLOB_GAS * 3
    assert refusal(AFTER, blob_payment(max_fee_per_blob_gas=2), blob_base_fee=3) == (
        "blob_fee_cap_too_low"
    )


def test_a_contract_reads_the_hashes():
    assert run(BEFORE, "0 BLOBHASH").error == INVALID_OPCODE
    assert cost(AFTER, "0", "BLOBHASH") == 3
    store = "0 BLOBHASH 0 SSTORE 1 BLOBHASH 1 SSTORE 2 BLOBHASH 2 SSTORE"
    evm = machine(AFTER, {CONTRACT: {"code": store}})
    evm.execute(blob_payment(2, to=CONTRACT))
    expected = [*(int.from_bytes(digest, "big") for digest in BLOB_HASHES[:2]), 0]
    assert [evm.storage(CONTRACT, slot) for slot in range(3)] == expected


def test_the_header_counts_blob_gas_from_then_on():
    chain = chain_across(4844)
    before = grow(chain, transactions=[payment(0)]).header
    assert (before.blob_gas_used, before.excess_blob_gas) == (None, None)
    block = build(chain, transactions=[blob_payment(6, nonce=1, to=CONTRACT)])[0]
    assert refused_block(chain, with_header(block, blob_gas_used=5 * BLOB_GAS)) == "blob_gas_used"
    chain.add(block)
    after, child = chain.head.header, grow(chain).header
    assert (after.blob_gas_used, after.excess_blob_gas) == (6 * BLOB_GAS, 0)
    assert (child.blob_gas_used, child.excess_blob_gas) == (0, 3 * BLOB_GAS)


@pytest.mark.parametrize(("excess", "fee"), [(0, 1), (2_314_058, 2), (10 * 2**20, 23)])
def test_the_blob_fee_follows_the_excess(excess, fee):
    assert blob_base_fee(excess, schedule_for(AFTER)) == fee


def test_a_precompile_checks_a_point_of_a_blob():
    """For the blob of zeros, the commitment and every proof are the point at infinity."""
    infinity = b"\xc0" + bytes(47)
    digest = b"\x01" + sha256(infinity).digest()[1:]
    data = digest + (5).to_bytes(32, "big") + bytes(32) + infinity + infinity
    before, after = (call_precompile(fork, POINT_EVALUATION, data) for fork in (BEFORE, AFTER))
    assert (before.success, before.output, before.gas_used) == (True, b"", 0)
    assert (after.success, after.gas_used) == (True, 50_000)
    field_elements, modulus = after.output[:32], after.output[32:]
    assert int.from_bytes(field_elements, "big") == 4_096
    assert int.from_bytes(modulus, "big").bit_length() == 255
    wrong = digest + (5).to_bytes(32, "big") + (1).to_bytes(32, "big") + infinity + infinity
    assert not call_precompile(AFTER, POINT_EVALUATION, wrong).success
