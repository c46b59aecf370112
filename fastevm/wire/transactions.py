"""Transactions as JSON, written and read: in a block, or in the pool.

Shapes are those of deployed nodes: r and s are quantities, the ``gasPrice`` of a mined transaction
is what it paid per gas, an unprotected legacy transaction has no ``chainId``.
"""

from collections.abc import Mapping
from typing import Any, Final

from fastevm.execution.transaction import Transaction
from fastevm.types import Block
from fastevm.wire.text.hex import hex_bytes, hex_word, quantity
from fastevm.wire.text.members import read_bytes, read_number

LEGACY, ACCESS_LIST, DYNAMIC_FEE, BLOB, SET_CODE = range(5)
DYNAMIC_FEES: Final = frozenset((DYNAMIC_FEE, BLOB, SET_CODE))

NO_SENDER: Final = bytes(20)  # the sender of an unsigned transaction that names none

Json = dict[str, Any]


def mined_transaction_json(block: Block, index: int, block_hash: bytes | None) -> Json:
    """Return transaction ``index`` of a block; ``block_hash`` is None in a pre-confirmed one."""
    header, transaction = block.header, block.transactions[index]
    answer = transaction_json(transaction, base_fee=header.base_fee_per_gas)
    answer["blockHash"] = None if block_hash is None else hex_bytes(block_hash)
    answer["blockNumber"] = quantity(header.number)
    answer["blockTimestamp"] = quantity(header.timestamp)
    answer["transactionIndex"] = quantity(index)
    return answer


def transaction_json(transaction: Any, *, base_fee: int | None = None) -> Json:
    """Return a transaction object, in the pool when no block's ``base_fee`` is given.

    ``gasPrice`` is then the fee cap; the members that place it in a block are null.
    """
    kind = transaction.type
    answer: Json = {
        "blockHash": None,
        "blockNumber": None,
        "blockTimestamp": None,
        "from": hex_bytes(transaction.sender or NO_SENDER),
        "gas": quantity(transaction.gas_limit),
        "gasPrice": quantity(_price(transaction, base_fee)),
        "hash": hex_bytes(transaction.hash),
        "input": hex_bytes(transaction.data),
        "nonce": quantity(transaction.nonce),
        "to": None if transaction.to is None else hex_bytes(transaction.to),
        "transactionIndex": None,
        "value": quantity(transaction.value),
        "type": quantity(kind),
        "v": quantity(transaction.v),
        "r": quantity(transaction.r),
        "s": quantity(transaction.s),
    }
    if transaction.chain_id is not None:
        answer["chainId"] = quantity(transaction.chain_id)
    if kind != LEGACY:
        answer["accessList"] = access_list_json(transaction.access_list)
        answer["yParity"] = quantity(transaction.v)
    if kind in DYNAMIC_FEES:
        answer["maxFeePerGas"] = quantity(transaction.max_fee_per_gas)
        answer["maxPriorityFeePerGas"] = quantity(transaction.max_priority_fee_per_gas)
    if kind == BLOB:
        answer["maxFeePerBlobGas"] = quantity(transaction.max_fee_per_blob_gas)
        hashes = transaction.blob_versioned_hashes
        answer["blobVersionedHashes"] = [hex_bytes(versioned) for versioned in hashes]
    if kind == SET_CODE:
        signed = transaction.authorization_list
        answer["authorizationList"] = [_authorization_json(entry) for entry in signed]
    return answer


def access_list_json(access_list: Any) -> list[Json]:
    """Return an access list of (address, slots) pairs."""
    return [
        {"address": hex_bytes(address), "storageKeys": [hex_word(slot) for slot in slots]}
        for address, slots in access_list
    ]


def _authorization_json(entry: Any) -> Json:
    return {
        "chainId": quantity(entry.chain_id),
        "address": hex_bytes(entry.address),
        "nonce": quantity(entry.nonce),
        "yParity": quantity(entry.y_parity),
        "r": quantity(entry.r),
        "s": quantity(entry.s),
    }


def _price(transaction: Any, base_fee: int | None) -> int:
    if base_fee is None or transaction.type not in DYNAMIC_FEES:
        return int(transaction.max_fee_per_gas)
    return int(transaction.effective_gas_price(base_fee))


# --- reading --------------------------------------------------------------------------------------


def transaction_from_json(found: Mapping[str, Any]) -> Transaction:
    """A signed transaction of any type; ValueError when it does not hash to its hash."""
    kind = read_number(found.get("type") or "0x0", "type")
    fields: dict[str, Any] = {
        "type": kind,
        "nonce": _read_number(found, "nonce"),
        "gas_limit": _read_number(found, "gas"),
        "to": None if found.get("to") is None else read_bytes(found["to"], "to", 20),
        "value": _read_number(found, "value"),
        "data": read_bytes(found.get("input", "0x"), "input"),
        "v": _read_number(found, "v"),
        "r": _read_number(found, "r"),
        "s": _read_number(found, "s"),
    }
    if found.get("chainId") is not None:
        fields["chain_id"] = _read_number(found, "chainId")
    if kind < 2:
        fields["gas_price"] = _read_number(found, "gasPrice")
    else:
        fields["max_fee_per_gas"] = _read_number(found, "maxFeePerGas")
        fields["max_priority_fee_per_gas"] = _read_number(found, "maxPriorityFeePerGas")
    transaction = Transaction.build(**fields, **_read_lists(found, kind))
    if transaction.hash != read_bytes(found.get("hash"), "hash", 32):
        raise ValueError(f"transaction {found.get('hash')}: it does not hash to its hash")
    return transaction


def _read_lists(found: Mapping[str, Any], kind: int) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if kind >= 1:
        fields["access_list"] = [
            (
                read_bytes(entry["address"], "accessList", 20),
                [read_bytes(key, "accessList", 32) for key in entry["storageKeys"]],
            )
            for entry in found.get("accessList") or ()
        ]
    if kind == 3:
        fields["max_fee_per_blob_gas"] = _read_number(found, "maxFeePerBlobGas")
        fields["blob_versioned_hashes"] = [
            read_bytes(one, "blobVersionedHashes", 32) for one in found["blobVersionedHashes"]
        ]
    if kind == 4:
        fields["authorization_list"] = [
            (
                _read_number(one, "chainId"),
                read_bytes(one["address"], "authorizationList", 20),
                *(_read_number(one, name) for name in ("nonce", "yParity", "r", "s")),
            )
            for one in found["authorizationList"]
        ]
    return fields


def _read_number(found: Mapping[str, Any], name: str) -> int:
    return read_number(found.get(name), name)
