"""Tests published vectors of OP-stack chains that involve several modules: limits, roots, vaults.

Sources: execution engine pages of the OP Stack specification (Granite to Karst), tests of op-reth
and op-alloy, witnesses of OP Sepolia.
"""

import pytest

from fastevm.core.execution.block.block import execute_block
from fastevm.core.execution.block.header_draft import draft_header
from fastevm.core.execution.block.roots import ordered_root
from fastevm.core.execution.block.validation import validate_header
from fastevm.core.execution.op_stack.l1_attributes import attributes_of, attributes_source_hash
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Block, Header
from fastevm.core.precompiles.registry import run
from fastevm.core.spec.schedule import schedule_for
from fastevm.errors import InvalidBlock
from fastevm.rpc_types.blocks import block_from_json
from tests.op_stack_data import HOLOCENE, hex_data, pre_state, sepolia_blocks, vectors_of

DATA = sepolia_blocks()
VAULTS = {
    "sequencerFeeVault": bytes.fromhex("4200000000000000000000000000000000000011"),
    "baseFeeVault": bytes.fromhex("4200000000000000000000000000000000000019"),
    "l1FeeVault": bytes.fromhex("420000000000000000000000000000000000001a"),
}
GAS = 10**9
LIMITS = [
    (int(vector["address"], 16), fork, most)
    for vector in vectors_of("precompileLimit")
    for fork, most in vector["largestAllowed"].items()
]


@pytest.mark.parametrize(("number", "fork", "most"), LIMITS)
def test_a_precompile_refuses_more_input_than_its_limit(number, fork, most):
    schedule = schedule_for(fork)
    assert schedule.packed()["precompile_max_input"][number] == most
    # Input above the limit consumes all gas, however much is given.
    assert run(number, bytes(most + 1), GAS, fork) == (False, b"", 0)
    assert run(number, bytes(most + 1), 1, fork)[0] is False
    pair = 192 if number == 0x08 else {0x0C: 160, 0x0E: 288, 0x0F: 384}[number]
    usable = most - most % pair  # Granite's limit is not a multiple of the pair size
    succeeded, _, left = run(number, bytes(usable), GAS, fork)
    assert succeeded
    assert 0 < left < GAS


@pytest.mark.parametrize("vector", vectors_of("receiptsRoot"), ids=lambda vector: vector["id"])
def test_the_receipts_root_of_regolith_leaves_the_nonce_out(vector):
    encoded = [hex_data(text) for text in vector["receiptsWithoutNonce"]]
    assert ordered_root(encoded) == hex_data(vector["rootRegolith"])


@pytest.mark.parametrize("vector", vectors_of("vaults"), ids=lambda vector: vector["id"])
def test_the_vaults_of_a_real_block_grow_as_they_did(vector):
    block = next(item for item in DATA["blocks"] if item["number"] == vector["block"])
    header = block_from_json({**block["header"], "hash": block["hash"]}).header
    transactions = tuple(Transaction.decode(hex_data(raw)) for raw in block["transactions"])
    before = pre_state(block)
    after = execute_block(
        before,
        Block(header, transactions, withdrawals=()),
        HOLOCENE,
        chain_id=DATA["chainId"],
        deposit_contract=bytes(20),
        ancestors=(header.parent_hash,),
    ).layer
    for name, address in VAULTS.items():
        assert after.balance(address) - before.balance(address) == vector[name], name


@pytest.mark.parametrize("vector", vectors_of("extraDataInvalid"), ids=lambda v: v["extraData"])
def test_extra_data_of_another_form_than_the_forks_is_refused(vector):
    found = hex_data(vector["extraData"])
    fork = "holocene" if "Holocene" in vector["reason"] else "jovian"
    if vector["reason"] in ("denominator 0", "elasticity 0"):
        fork = "holocene"
    schedule = schedule_for(fork)
    parent = Header(gas_limit=10**7, base_fee_per_gas=7, timestamp=1)
    draft = draft_header(parent, schedule, timestamp=3)
    validate_header(draft, parent, schedule)
    fields = {name: getattr(draft, name) for name in Header.__struct_fields__}
    with pytest.raises(InvalidBlock, match=r"extra_data: expected .* bytes of fee parameters"):
        validate_header(Header(**{**fields, "extra_data": found}), parent, schedule)


@pytest.mark.parametrize("vector", vectors_of("deposit"), ids=lambda vector: vector["id"])
def test_the_source_hash_of_real_attributes_follows_from_them(vector):
    transaction = Transaction.decode(hex_data(vector["raw"]))
    known = attributes_of((transaction,))
    assert known is not None
    assert attributes_source_hash(known) == transaction.source_hash
