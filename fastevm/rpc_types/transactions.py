"""Reads and writes transactions as JSON, in a block or in the pool.

The formats are those of deployed nodes: r and s are quantities, the ``gasPrice`` of a mined
transaction is the price it paid, an unprotected legacy transaction has no ``chainId``.
"""

from collections.abc import Mapping
from typing import Any, Final

from fastevm.core.execution.arbitrum import transaction_types as arbitrum
from fastevm.core.execution.op_stack.base_time import timestamp_millis
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.transaction.transaction_fields import DEPOSIT_TX
from fastevm.core.execution.types import Block, Receipt
from fastevm.core.primitives.config_values import read_bytes, read_number
from fastevm.core.primitives.hex import hex_bytes, hex_word, quantity

LEGACY, ACCESS_LIST, DYNAMIC_FEE, BLOB, SET_CODE = range(5)
DEPOSIT: Final = DEPOSIT_TX
DYNAMIC_FEES: Final = frozenset((DYNAMIC_FEE, BLOB, SET_CODE))

# Fields that `transaction_json` writes for every type.
STANDARD_FIELDS: Final = frozenset(("sender", "to", "value", "nonce", "gas_limit", "data"))
NO_SENDER: Final = bytes(20)  # the sender of an unsigned transaction without one

Json = dict[str, Any]


def mined_transaction_json(
    block: Block, index: int, block_hash: bytes | None, receipt: Receipt | None = None
) -> Json:
    """Returns transaction ``index`` of a block. ``block_hash``: None in a pre-confirmed block.

    ``receipt``: the receipt of a deposit, which contains its nonce.
    """
    header, transaction = block.header, block.transactions[index]
    nonce = None if receipt is None else receipt.deposit_nonce
    answer = transaction_json(transaction, base_fee=header.base_fee_per_gas, deposit_nonce=nonce)
    answer["blockHash"] = None if block_hash is None else hex_bytes(block_hash)
    answer["blockNumber"] = quantity(header.number)
    answer["blockTimestamp"] = quantity(header.timestamp)
    answer["transactionIndex"] = quantity(index)
    millis = None if block_hash is None else timestamp_millis(header, block.transactions)
    if millis is not None:
        answer["blockTimestampMs"] = quantity(millis)
    if receipt is not None and receipt.deposit_receipt_version is not None:
        answer["depositReceiptVersion"] = quantity(receipt.deposit_receipt_version)
    return answer


def transaction_json(
    transaction: Any, *, base_fee: int | None = None, deposit_nonce: int | None = None
) -> Json:
    """Returns a transaction object, without ``base_fee`` the object of a pooled transaction.

    ``gasPrice`` of a pooled transaction is its fee cap, and the members about its block are null.
    ``deposit_nonce``: the sender's nonce of a deposit, from the deposit's receipt.
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
        "nonce": quantity(transaction.nonce if deposit_nonce is None else deposit_nonce),
        "to": None if transaction.to is None else hex_bytes(transaction.to),
        "transactionIndex": None,
        "value": quantity(transaction.value),
        "type": quantity(kind),
        "v": quantity(transaction.v),
        "r": quantity(transaction.r),
        "s": quantity(transaction.s),
    }
    answer.update(_members_of_the_type(transaction, kind))
    return answer


def _members_of_the_type(transaction: Any, kind: int) -> Json:
    """Returns the members that only some transaction types have."""
    if kind == DEPOSIT_TX:
        return _deposit_members(transaction)
    if kind in arbitrum.LAYOUTS:
        return _arbitrum_members(transaction)
    members: Json = {}
    if transaction.chain_id is not None:
        members["chainId"] = quantity(transaction.chain_id)
    if kind != LEGACY:
        members["accessList"] = access_list_json(transaction.access_list)
        members["yParity"] = quantity(transaction.v)
    if kind in DYNAMIC_FEES:
        members["maxFeePerGas"] = quantity(transaction.max_fee_per_gas)
        members["maxPriorityFeePerGas"] = quantity(transaction.max_priority_fee_per_gas)
    if kind == BLOB:
        members["maxFeePerBlobGas"] = quantity(transaction.max_fee_per_blob_gas)
        hashes = transaction.blob_versioned_hashes
        members["blobVersionedHashes"] = [hex_bytes(versioned) for versioned in hashes]
    if kind == SET_CODE:
        signed = transaction.authorization_list
        members["authorizationList"] = [_authorization_json(entry) for entry in signed]
    return members


def _deposit_members(transaction: Transaction) -> Json:
    """Returns the additional members of a deposit. ``isSystemTx`` is present only if true."""
    members: Json = {
        "sourceHash": hex_bytes(transaction.source_hash or bytes(32)),
        "mint": quantity(transaction.mint or 0),
        "yParity": "0x0",
    }
    if transaction.is_system:
        members["isSystemTx"] = True
    return members


def _arbitrum_members(transaction: Transaction) -> Json:
    """Returns the members that Arbitrum's types have and standard types lack."""
    fields = arbitrum.fields_of(transaction.raw)
    members: Json = {}
    for field in arbitrum.LAYOUTS[transaction.type]:
        value = fields[field.name]
        if field.name in STANDARD_FIELDS or value is None:
            continue
        members[field.json] = quantity(value) if isinstance(value, int) else hex_bytes(value)
    return members


def access_list_json(access_list: Any) -> list[Json]:
    """Returns an access list of (address, slots) pairs."""
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
    """Reads a signed transaction of any type. Raises ValueError if its hash differs."""
    return _checked(found, unchecked_transaction(found))


def unchecked_transaction(found: Mapping[str, Any]) -> Transaction:
    """Reads a transaction without checking its hash. Raises ValueError with the invalid member."""
    kind = read_number(found.get("type") or "0x0", "type")
    if kind == DEPOSIT_TX:
        return _deposit_from_json(found)
    if kind in arbitrum.LAYOUTS:
        return _arbitrum_from_json(kind, found)
    if kind == arbitrum.CLASSIC:
        raise ValueError(
            f"transaction {found.get('hash')}: type 0x78 belongs to Arbitrum Classic, where a hash"
            " does not follow from the fields"
        )
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
    return Transaction.build(**fields, **_read_lists(found, kind))


def _deposit_from_json(found: Mapping[str, Any]) -> Transaction:
    return Transaction.build(
        type=DEPOSIT_TX,
        source_hash=read_bytes(found.get("sourceHash"), "sourceHash", 32),
        sender=read_bytes(found.get("from"), "from", 20),
        to=None if found.get("to") is None else read_bytes(found["to"], "to", 20),
        mint=0 if found.get("mint") is None else _read_number(found, "mint"),
        value=_read_number(found, "value"),
        gas_limit=_read_number(found, "gas"),
        is_system=bool(found.get("isSystemTx")),
        data=read_bytes(found.get("input", "0x"), "input"),
    )


def _arbitrum_from_json(kind: int, found: Mapping[str, Any]) -> Transaction:
    fields: dict[str, Any] = {}
    for field in arbitrum.LAYOUTS[kind]:
        value = found.get(field.json)
        if field.json == "maxFeePerGas" and value is None:
            value = found.get("gasPrice")
        if value is None and field.form in arbitrum.OPTIONAL:
            fields[field.name] = None
        elif field.form in arbitrum.INTEGERS:
            fields[field.name] = read_number(value, field.json)
        else:
            size = arbitrum.FIXED_BYTES.get(field.form)
            fields[field.name] = read_bytes(value, field.json, size)
    return Transaction.decode(arbitrum.encode(kind, fields))


def _checked(found: Mapping[str, Any], transaction: Transaction) -> Transaction:
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
            read_bytes(item, "blobVersionedHashes", 32) for item in found["blobVersionedHashes"]
        ]
    if kind == 4:
        fields["authorization_list"] = [
            (
                _read_number(item, "chainId"),
                read_bytes(item["address"], "authorizationList", 20),
                *(_read_number(item, name) for name in ("nonce", "yParity", "r", "s")),
            )
            for item in found["authorizationList"]
        ]
    return fields


def _read_number(found: Mapping[str, Any], name: str) -> int:
    return read_number(found.get(name), name)
