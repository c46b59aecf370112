"""Verifies answers of eth_getProof against the state root of a block."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from fastevm.core.primitives.config_values import read_bytes
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.primitives.rlp import decode
from fastevm.core.trie.proof import EMPTY_ROOT, verify_proof
from fastevm.fork.account_reads import EMPTY_CODE_HASH

MEMBERS: Final = 4  # nonce, balance, storage root, code hash


class ProvenAccount(Struct, frozen=True):
    """An account of the state trie. An absent account has zeros and the hashes of empty data."""

    nonce: int = 0
    balance: int = 0
    storage_root: bytes = EMPTY_ROOT
    code_hash: bytes = EMPTY_CODE_HASH


def proven_account(state_root: Any, address: bytes, answer: Any) -> ProvenAccount:
    """Returns the account in an answer of eth_getProof. Raises ValueError for an invalid proof."""
    root = read_bytes(state_root, "stateRoot", 32)
    nodes = [read_bytes(node, "accountProof") for node in answer["accountProof"]]
    found = verify_proof(root, keccak256(address), nodes)
    if found is None:
        return ProvenAccount()
    fields = decode(found)
    if not isinstance(fields, list) or len(fields) != MEMBERS:
        raise ValueError("no account in the leaf of a proof")
    nonce, balance, storage_root, code_hash = (bytes_of_item(item) for item in fields)
    return ProvenAccount(
        int.from_bytes(nonce, "big"), int.from_bytes(balance, "big"), storage_root, code_hash
    )


def bytes_of_item(item: object) -> bytes:
    """Returns an RLP item of an account as bytes. Raises ValueError for a list."""
    if not isinstance(item, bytes):
        raise ValueError("a list instead of a value in the leaf of a proof")
    return item
