"""Executes real OP Sepolia blocks on the state that they read, and compares the published hashes.

Source: executor fixtures of kona (eight Holocene blocks). Every value of the state is checked by
its hash.
"""

import pytest
import rlp
from eth_hash.auto import keccak
from trie import HexaryTrie

from fastevm.core.execution.block.block import execute_block
from fastevm.core.execution.block.validation import (
    transactions_root,
    validate_body,
    validate_header,
)
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Block
from fastevm.core.primitives.replace import replace
from fastevm.rpc_types.blocks import block_from_json
from tests.op_stack_data import HOLOCENE, hex_data, pre_state, sepolia_blocks

DATA = sepolia_blocks()


def state_root_after(block, layer):
    """Returns the state root after the block, computed from the nodes in its witness."""
    nodes = {
        keccak(node): node for node in map(hex_data, (DATA["nodes"][i] for i in block["nodes"]))
    }
    trie = HexaryTrie(nodes, hex_data(block["parent"]["stateRoot"]))
    for address in map(hex_data, block["pre"]):
        old = trie.get(keccak(address))
        account = layer.account(address)
        if account is None:
            if old:
                del trie[keccak(address)]
            continue
        root = rlp.decode(old)[2] if old else keccak(rlp.encode(b""))
        storage = HexaryTrie(nodes, root)
        known = block["pre"]["0x" + address.hex()] or {"storage": {}}
        slots = {int(slot, 16) for slot in known["storage"]} | set(layer.storage_items(address))
        for slot in slots:
            key, value = keccak(slot.to_bytes(32, "big")), layer.storage(address, slot)
            encoded = rlp.encode(value) if value else b""
            if storage.get(key) == encoded:
                continue
            if encoded:
                storage[key] = encoded
            else:
                del storage[key]
        code_hash = keccak(layer.code(address))
        trie[keccak(address)] = rlp.encode(
            [account.nonce, account.balance, storage.root_hash, code_hash]
        )
    return trie.root_hash


@pytest.mark.parametrize("block", DATA["blocks"], ids=[str(b["number"]) for b in DATA["blocks"]])
def test_a_block_of_op_sepolia_executes_to_its_hash(block):
    parent = block_from_json({**block["parent"], "hash": block["parentHash"]}).header
    header = block_from_json({**block["header"], "hash": block["hash"]}).header
    transactions = tuple(Transaction.decode(hex_data(raw)) for raw in block["transactions"])
    given = Block(header, transactions, withdrawals=())
    validate_header(header, parent, HOLOCENE)
    validate_body(given, HOLOCENE)
    result = execute_block(
        pre_state(block),
        given,
        HOLOCENE,
        chain_id=DATA["chainId"],
        deposit_contract=bytes(20),
        ancestors=(parent.hash,),
    )
    assert [receipt.rlp() for receipt in result.receipts] == list(map(hex_data, block["receipts"]))
    sealed = replace(
        header,
        state_root=state_root_after(block, result.layer),
        transactions_root=transactions_root(given),
        receipts_root=result.receipts_root,
        logs_bloom=result.logs_bloom,
        gas_used=result.gas_used,
        blob_gas_used=result.blob_gas_used,
        withdrawals_root=result.withdrawals_root,
    )
    assert sealed.hash == hex_data(block["hash"])
