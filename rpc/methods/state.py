"""Reads of accounts: balance, nonce, code, storage and proofs."""

from typing import Any, Final

import fastevm
from fastevm import Layer
from fastevm.core.execution.types import AccountProof
from fastevm.core.primitives.hex import hex_bytes, hex_word, quantity
from fastevm.rpc.before_fork import HeldUpstream
from fastevm.rpc.block_id import LATEST, PENDING_BLOCK, BlockId
from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.params import ADDRESS, BLOCK_OR_LATEST, INTERFACE_BLOCK, TEXT
from fastevm.rpc.dispatch.registry import Param, RunOn, method
from fastevm.rpc.errors import RpcError
from fastevm.rpc.limits import STORAGE_KEYS_LIMIT
from fastevm.rpc_types.quantity import (
    DecodeError,
    decode_address,
    decode_storage_slot,
    object_fault,
)
from fastevm.rpc_types.state_reads import Read
from fastevm.rpc_types.transactions import Json

FULL_KEY_SIZE: Final = 32
EMPTY_CODE_HASH: Final = fastevm.keccak256(b"")
NO_PROOFS: Final = (
    "no proofs above block {number}, where this chain was forked: its state is known in part only;"
    " ask for block {number} or one before it"
)


@method("eth_getBalance", ADDRESS, BLOCK_OR_LATEST, reads=Read.BALANCE)
def get_balance(context: Context, address: bytes, block: BlockId) -> str:
    """Return the balance in wei. ``pending`` includes pre-confirmed transactions."""
    return quantity(context.view(block).layer.balance(address))


@method("eth_getTransactionCount", ADDRESS, INTERFACE_BLOCK, reads=Read.NONCE)
def get_transaction_count(context: Context, address: bytes, block: BlockId) -> str:
    """Return the nonce of an account.

    ``pending`` returns the next nonce to use: after pre-confirmed transactions and the account's
    executable transactions in the pool. ``latest`` includes pre-confirmed transactions if the
    listener returns their receipts (``--receipts preconfirmed``).
    """
    early = context.dialect.receipts_of_slices and block.tag == LATEST
    nonce = context.view(PENDING_BLOCK if early else block).layer.nonce(address)
    if block.is_pending:
        nonce = context.node.pool.next_nonce(address, nonce)
    return quantity(nonce)


@method("eth_getCode", ADDRESS, BLOCK_OR_LATEST, reads=Read.CODE)
def get_code(context: Context, address: bytes, block: BlockId) -> str:
    """Return the code of an account. A delegated account returns its delegation (EIP-7702)."""
    return hex_bytes(context.view(block).layer.code(address))


@method("eth_getAccountInfo", ADDRESS, BLOCK_OR_LATEST)
def get_account_info(context: Context, address: bytes, block: BlockId) -> Json:
    """Return balance, nonce and code; zero values if the account does not exist."""
    return account_info(context.view(block).layer, address)


def account_info(layer: Layer, address: bytes) -> Json:
    """Return balance, nonce and code of an account in ``layer``."""
    return {
        "balance": quantity(layer.balance(address)),
        "nonce": quantity(layer.nonce(address)),
        "code": hex_bytes(layer.code(address)),
    }


@method("eth_getAccount", ADDRESS, BLOCK_OR_LATEST, run_on=RunOn.WORKER)
def get_account(context: Context, address: bytes, block: BlockId) -> Json:
    """Return an account as stored in the state trie, with storage root and code hash."""
    proof = _proof(context, address, [], block)
    account = proof.account
    return {
        "balance": quantity(account.balance if account else 0),
        "nonce": quantity(account.nonce if account else 0),
        "storageRoot": hex_bytes(proof.storage_root),
        "codeHash": hex_bytes(account.code_hash if account else EMPTY_CODE_HASH),
    }


@method("eth_getStorageAt", ADDRESS, TEXT, INTERFACE_BLOCK, reads=Read.STORAGE)
def get_storage_at(context: Context, address: bytes, position: str, block: BlockId) -> str:
    """Return the 32 bytes of a slot. ``position`` is hex text of at most 32 bytes."""
    slot, _ = _slot(position)
    return hex_word(context.view(block).layer.storage(address, slot))


def decode_slot_requests(value: Any) -> dict[bytes, list[int]]:
    """Decode an object of address -> list of storage keys."""
    if not isinstance(value, dict):
        raise object_fault(value, "map[common.Address][]common.Hash")
    requests = {}
    for key, positions in value.items():
        if not isinstance(positions, list):
            raise object_fault(positions, "[]common.Hash")
        requests[decode_address(key)] = [decode_storage_slot(p)[0] for p in positions]
    return requests


@method("eth_getStorageValues", Param(decode_slot_requests), BLOCK_OR_LATEST, run_on=RunOn.WORKER)
def get_storage_values(
    context: Context, requests: dict[bytes, list[int]], block: BlockId
) -> dict[str, list[str]]:
    """Return slots of several accounts, by address."""
    count = sum(map(len, requests.values()))
    if count == 0:
        raise RpcError("invalid_params", "empty request")
    if count > STORAGE_KEYS_LIMIT:
        raise RpcError("limit_exceeded", f"too many slots (max {STORAGE_KEYS_LIMIT})")
    layer = context.view(block).layer
    return {
        hex_bytes(address): [hex_word(layer.storage(address, slot)) for slot in slots]
        for address, slots in requests.items()
    }


def decode_keys(value: Any) -> list[str]:
    """Decode a list of storage keys, each as text."""
    if not isinstance(value, list):
        raise object_fault(value, "[]string")
    for key in value:
        if not isinstance(key, str):
            raise object_fault(key, "string")
    return value


@method("eth_getProof", ADDRESS, Param(decode_keys), BLOCK_OR_LATEST, run_on=RunOn.WORKER)
def get_proof(context: Context, address: bytes, keys: list[str], block: BlockId) -> Json:
    """Return an account and slots with their trie nodes, root first (EIP-1186).

    A missing account has zero values, the hash of empty code and the root of an empty trie.
    """
    if len(keys) > STORAGE_KEYS_LIMIT:
        raise RpcError(
            "invalid_params",
            f"too many storage keys requested (max {STORAGE_KEYS_LIMIT}, got {len(keys)})",
        )
    slots = [_slot(key) for key in keys]
    proof = _proof(context, address, [slot for slot, _ in slots], block)
    account = proof.account
    return {
        "address": hex_bytes(address),
        "accountProof": [hex_bytes(node) for node in proof.nodes],
        "balance": quantity(account.balance if account else 0),
        "codeHash": hex_bytes(account.code_hash if account else EMPTY_CODE_HASH),
        "nonce": quantity(account.nonce if account else 0),
        "storageHash": hex_bytes(proof.storage_root),
        "storageProof": [
            {
                "key": hex_word(slot) if size == FULL_KEY_SIZE else quantity(slot),
                "value": quantity(entry.value),
                "proof": [hex_bytes(node) for node in entry.nodes],
            }
            for (slot, size), entry in zip(slots, proof.slots, strict=True)
        ],
    }


def _proof(context: Context, address: bytes, slots: list[int], block: BlockId) -> AccountProof:
    """Return an account's proof. Raises HeldUpstream at the fork block, RpcError above it."""
    view, history = context.view(block), context.node.history
    if history is not None:
        if view.block is not context.node.chain.genesis:
            raise RpcError("server_error", NO_PROOFS.format(number=history.number))
        raise HeldUpstream(quantity(history.number))
    return view.layer.proof(address, slots)


def _slot(position: str) -> tuple[int, int]:
    try:
        return decode_storage_slot(position)
    except DecodeError as fault:
        raise RpcError("invalid_params", str(fault)) from None
