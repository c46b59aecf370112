"""Blocks, transactions and receipts in the format of eth-tester's backends."""

from __future__ import annotations

from typing import Any

from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import LATER_FIELDS, Withdrawal
from fastevm.integrations.eth_tester.tester_chain import Mined

ACCESS_LIST, DYNAMIC_FEE, BLOB, SET_CODE = 1, 2, 3, 4


def block_values(mined: Mined, full_transactions: bool) -> dict[str, Any]:
    """Returns a block, with full transactions or their hashes."""
    header, block = mined.header, mined.block
    count = range(len(block.transactions))
    transactions = [
        transaction_values(mined, index) if full_transactions else block.transactions[index].hash
        for index in count
    ]
    found: dict[str, Any] = {
        "number": header.number,
        "hash": header.hash,
        "parent_hash": header.parent_hash,
        "nonce": header.nonce,
        "sha3_uncles": header.ommers_hash,
        "logs_bloom": int.from_bytes(header.logs_bloom, "big"),
        "transactions_root": header.transactions_root,
        "receipts_root": header.receipts_root,
        "state_root": header.state_root,
        "coinbase": header.coinbase,
        "difficulty": header.difficulty,
        "total_difficulty": header.difficulty,
        "mix_hash": header.mix_hash,
        "size": len(block.rlp()),
        "extra_data": header.extra_data.rjust(32, b"\0"),
        "gas_limit": header.gas_limit,
        "gas_used": header.gas_used,
        "timestamp": header.timestamp,
        "transactions": transactions,
        "uncles": [],
    }
    for row in LATER_FIELDS:
        if (value := getattr(header, row.name)) is not None:
            found[row.name] = value
    if block.withdrawals is not None:
        found["withdrawals"] = [withdrawal_values(each) for each in block.withdrawals]
    return found


def withdrawal_values(withdrawal: Withdrawal) -> dict[str, Any]:
    """Returns a withdrawal of a block."""
    names = ("index", "validator_index", "address", "amount")
    return {name: getattr(withdrawal, name) for name in names}


def _position(mined: Mined, index: int) -> dict[str, Any]:
    if mined.is_pending:
        return {"block_hash": None, "block_number": None, "transaction_index": None}
    number = mined.header.number
    return {"block_hash": mined.block.hash, "block_number": number, "transaction_index": index}


def transaction_values(mined: Mined, index: int) -> dict[str, Any]:
    """Returns a transaction of a block."""
    tx = mined.block.transactions[index]
    found: dict[str, Any] = {
        "type": tx.type,
        "hash": tx.hash,
        "nonce": tx.nonce,
        **_position(mined, index),
        "from": tx.sender,
        "to": tx.to or b"",
        "value": tx.value,
        "gas": tx.gas_limit,
        "data": tx.data,
        "gas_price": _price(mined, tx),
        "v": tx.v,
        "r": tx.r,
        "s": tx.s,
    }
    if tx.type >= ACCESS_LIST:
        found["chain_id"], found["y_parity"] = tx.chain_id, tx.v
        found["access_list"] = tuple(
            (entry.address, entry.storage_keys) for entry in tx.access_list
        )
    return found | _fee_values(tx)


def _price(mined: Mined, tx: Transaction) -> int:
    if mined.is_pending:
        return tx.max_fee_per_gas
    return tx.effective_gas_price(mined.header.base_fee_per_gas or 0)


def _fee_values(tx: Transaction) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if tx.type >= DYNAMIC_FEE:
        found["max_fee_per_gas"] = tx.max_fee_per_gas
        found["max_priority_fee_per_gas"] = tx.max_priority_fee_per_gas
    if tx.type == BLOB:
        found["max_fee_per_blob_gas"] = tx.max_fee_per_blob_gas
        found["blob_versioned_hashes"] = tx.blob_versioned_hashes
    if tx.type == SET_CODE:
        found["authorization_list"] = [
            {name: getattr(each, name)
             for name in ("chain_id", "address", "nonce", "y_parity", "r", "s")}
            for each in tx.authorization_list
        ]  # fmt: skip
    return found


def receipt_values(mined: Mined, index: int) -> dict[str, Any]:
    """Returns the receipt of a transaction of a block."""
    tx, receipt = mined.block.transactions[index], mined.receipts[index]
    block_members = _position(mined, index)
    status = 1 if receipt.status is None else receipt.status
    found: dict[str, Any] = {
        **block_members,
        "contract_address": receipt.contract_address,
        "cumulative_gas_used": receipt.cumulative_gas_used,
        "effective_gas_price": receipt.effective_gas_price,
        "from": tx.sender,
        "gas_used": receipt.gas_used,
        "logs": [
            {
                "type": "pending" if mined.is_pending else "mined",
                "log_index": position,
                **block_members,
                "transaction_hash": tx.hash,
                "address": log.address,
                "data": log.data,
                "topics": list(log.topics),
            }
            for position, log in enumerate(receipt.logs)
        ],
        "state_root": receipt.post_state or bytes([status]) * bool(status),
        "status": status,
        "to": tx.to or b"",
        "transaction_hash": tx.hash,
        "type": tx.type,
    }
    if tx.type == BLOB:
        found["blob_gas_used"], found["blob_gas_price"] = (
            receipt.blob_gas_used,
            receipt.blob_gas_price,
        )
    return found
