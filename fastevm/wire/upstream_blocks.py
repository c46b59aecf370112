"""Blocks from the JSON of eth_getBlockByNumber, for upstream nodes that give no raw blocks."""

from collections.abc import Mapping
from typing import Any

from fastevm.execution.transaction import Transaction
from fastevm.types import EMPTY_LIST_HASH, Block, Header, Withdrawal
from fastevm.wire.text.members import read_bytes, read_number

# Header field -> JSON member; those that are not here are the same in camel case.
HEADER_MEMBERS = {
    "ommers_hash": "sha3Uncles",
    "coinbase": "miner",
    "receipts_root": "receiptsRoot",
    "logs_bloom": "logsBloom",
}
BYTES = {
    "parent_hash", "ommers_hash", "coinbase", "state_root", "transactions_root", "receipts_root",
    "logs_bloom", "extra_data", "mix_hash", "nonce", "withdrawals_root",
    "parent_beacon_block_root", "requests_hash",
}  # fmt: skip


def block_from_json(found: Mapping[str, Any]) -> Block:
    """A post-merge block with full transaction objects; ValueError names what is wrong.

    Whether its hash is the ``hash`` that the node claims is checked here too.
    """
    header = Header(**_header_fields(found))
    if header.ommers_hash != EMPTY_LIST_HASH:
        raise ValueError("block: its uncles are not in the JSON")
    withdrawals = found.get("withdrawals")
    block = Block(
        header,
        tuple(transaction_from_json(one) for one in found.get("transactions") or ()),
        withdrawals=None if withdrawals is None else tuple(map(_withdrawal, withdrawals)),
    )
    if block.hash != read_bytes(found.get("hash"), "hash", 32):
        raise ValueError(f"block {header.number}: its header does not hash to its hash")
    return block


def transaction_from_json(found: Mapping[str, Any]) -> Transaction:
    """A signed transaction of any type; ValueError when it does not hash to its hash."""
    kind = read_number(found.get("type") or "0x0", "type")
    fields: dict[str, Any] = {
        "type": kind,
        "nonce": _number(found, "nonce"),
        "gas_limit": _number(found, "gas"),
        "to": None if found.get("to") is None else read_bytes(found["to"], "to", 20),
        "value": _number(found, "value"),
        "data": read_bytes(found.get("input", "0x"), "input"),
        "v": _number(found, "v"),
        "r": _number(found, "r"),
        "s": _number(found, "s"),
    }
    if found.get("chainId") is not None:
        fields["chain_id"] = _number(found, "chainId")
    if kind < 2:
        fields["gas_price"] = _number(found, "gasPrice")
    else:
        fields["max_fee_per_gas"] = _number(found, "maxFeePerGas")
        fields["max_priority_fee_per_gas"] = _number(found, "maxPriorityFeePerGas")
    transaction = Transaction.build(**fields, **_lists(found, kind))
    if transaction.hash != read_bytes(found.get("hash"), "hash", 32):
        raise ValueError(f"transaction {found.get('hash')}: it does not hash to its hash")
    return transaction


def _lists(found: Mapping[str, Any], kind: int) -> dict[str, Any]:
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
        fields["max_fee_per_blob_gas"] = _number(found, "maxFeePerBlobGas")
        fields["blob_versioned_hashes"] = [
            read_bytes(one, "blobVersionedHashes", 32) for one in found["blobVersionedHashes"]
        ]
    if kind == 4:
        fields["authorization_list"] = [
            (
                _number(one, "chainId"),
                read_bytes(one["address"], "authorizationList", 20),
                *(_number(one, name) for name in ("nonce", "yParity", "r", "s")),
            )
            for one in found["authorizationList"]
        ]
    return fields


def _header_fields(found: Mapping[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name in Header.__dataclass_fields__:
        if name.startswith("_"):
            continue
        first, *rest = name.split("_")
        member = HEADER_MEMBERS.get(name) or first + "".join(part.title() for part in rest)
        value = found.get(member)
        if value is None:
            continue
        fields[name] = read_bytes(value, member) if name in BYTES else read_number(value, member)
    return fields


def _withdrawal(found: Mapping[str, Any]) -> Withdrawal:
    return Withdrawal(
        index=_number(found, "index"),
        validator_index=_number(found, "validatorIndex"),
        address=read_bytes(found["address"], "withdrawals", 20),
        amount=_number(found, "amount"),
    )


def _number(found: Mapping[str, Any], name: str) -> int:
    return read_number(found.get(name), name)
