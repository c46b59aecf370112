"""State files of anvil as JSON: accounts, blocks, and transactions with receipts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field

from fastevm.core.execution.transaction.unsigned_sender import (
    ADDRESS_LIMIT,
    is_impersonated,
    with_named_sender,
)
from fastevm.core.execution.types import Block, Header, Log, Receipt
from fastevm.core.primitives.config_values import read_bytes, read_number
from fastevm.core.primitives.hex import hex_bytes, quantity
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.state.delegate import DELEGATION_PREFIX, delegate_of
from fastevm.core.state.layer import Layer
from fastevm.rpc_types.blocks import header_from_json, header_json
from fastevm.rpc_types.transactions import Json, transaction_json, unchecked_transaction

WORD_BYTES: Final = 32
BLOB_FEE: Final = {"excess_blob_gas": 0, "blob_gasprice": 1}
STOP, JUMPDEST, PUSH1 = 0x00, 0x5B, 0x60
LOCATION_MEMBERS: Final = frozenset({"blockHash", "blockNumber", "transactionIndex", "from"})
HEADER_HAS_NO: Final = ("hash", "size", "totalDifficulty")

BlockAndReceipts = tuple[Block, Sequence[Receipt]]


class SavedChain(Struct, frozen=True):
    """The content of a state file.

    ``accounts``: as in the ``alloc`` of a genesis file. ``blocks``: the newest consecutive blocks
    with their receipts, oldest first. ``environment``: header members of the newest block if it is
    not in ``blocks``. ``states``: the accounts in the states after older blocks, by block hash.
    """

    accounts: dict[str, Any]
    blocks: tuple[BlockAndReceipts, ...]
    environment: dict[str, Any]
    states: dict[bytes, dict[str, Any]] = field(default_factory=dict)


# --- writing --------------------------------------------------------------------------------------


def accounts_json(layer: Layer) -> Json:
    """Returns all accounts of a state."""
    answer: Json = {}
    for address in layer.addresses():
        found = layer.account(address)
        if found is not None:
            answer[hex_bytes(address)] = {
                "nonce": found.nonce,
                "balance": quantity(found.balance),
                "code": hex_bytes(layer.code(address)),
                "storage": {
                    _word(slot): _word(value)
                    for slot, value in sorted(layer.storage_items(address).items())
                },
            }
    return answer


def chain_json(
    layer: Layer,
    blocks: Sequence[BlockAndReceipts],
    states: Iterable[tuple[Block, Layer]] | None = None,
) -> Json:
    """Returns the state file of a chain.

    ``layer``: the state after the head. The head is the last of ``blocks``. ``states``: older
    blocks with the states after them, or None to write no older states.
    """
    head = blocks[-1][0].header
    return {
        "block": _environment_json(head),
        "accounts": accounts_json(layer),
        "best_block_number": head.number,
        "blocks": [_block_json(block) for block, _ in blocks],
        "transactions": [item for block, receipts in blocks for item in _mined(block, receipts)],
        "historical_states": None if states is None else [_state_json(*state) for state in states],
    }


def _environment_json(head: Header) -> Json:
    return {
        "number": quantity(head.number),
        "beneficiary": hex_bytes(head.coinbase),
        "timestamp": quantity(head.timestamp),
        "gas_limit": head.gas_limit,
        "basefee": head.base_fee_per_gas or 0,
        "difficulty": quantity(head.difficulty),
        "prevrandao": hex_bytes(head.mix_hash),
        "blob_excess_gas_and_price": BLOB_FEE | {"excess_blob_gas": head.excess_blob_gas or 0},
        "slot_num": 0,
    }


def _state_json(block: Block, layer: Layer) -> tuple[str, Json]:
    """Returns the hash of a block and the state after it. Code has revm's format."""
    accounts, storage = {}, {}
    for name, found in accounts_json(layer).items():
        code = layer.code(bytes.fromhex(name[2:]))
        accounts[name] = {
            "balance": found["balance"],
            "nonce": found["nonce"],
            "code_hash": hex_bytes(keccak256(code)),
            "code": _code_json(code),
        }
        storage[name] = {
            quantity(int(slot, 16)): quantity(int(value, 16))
            for slot, value in found["storage"].items()
        }
    return hex_bytes(block.hash), {"accounts": accounts, "storage": storage, "block_hashes": {}}


def _code_json(code: bytes) -> Json:
    delegate = delegate_of(code)
    if delegate is not None:
        return {"Eip7702": {"delegated_address": hex_bytes(delegate)}}
    targets, at = bytearray((len(code) + 7) // 8), 0
    while at < len(code):
        if code[at] == JUMPDEST:
            targets[at // 8] |= 1 << at % 8
        pushed = code[at] - PUSH1 + 1
        at += 1 + (pushed if 0 < pushed <= WORD_BYTES else 0)
    overrun = at - len(code)  # bytes by which the data of the last PUSH exceeds the code
    stop = 0 if code and not overrun and code[-1] == STOP else 1
    return {
        "LegacyAnalyzed": {
            "bytecode": hex_bytes(code + bytes(overrun + stop)),
            "original_len": len(code),
            "jump_table": {
                "order": "bitvec::order::Lsb0",
                "head": {"width": 8, "index": 0},
                "bits": len(code),
                "data": list(targets),
            },
        }
    }


def _block_json(block: Block) -> Json:
    header = header_json(block.header, block.hash)
    return {
        "header": {name: value for name, value in header.items() if name not in HEADER_HAS_NO},
        "transactions": [_transaction_json(transaction) for transaction in block.transactions],
        "ommers": [],
        "withdrawals": None,
    }


def _transaction_json(transaction: Any) -> Json:
    members = transaction_json(transaction)
    sender = hex_bytes(transaction.sender) if is_impersonated(transaction) else None
    # A mined transaction with EIP-1559 fees has no gasPrice in the file, because its receipt
    # contains the price that it paid.
    outside = LOCATION_MEMBERS | {"gasPrice"} if "maxFeePerGas" in members else LOCATION_MEMBERS
    return {
        "transaction": {name: value for name, value in members.items() if name not in outside},
        "impersonated_sender": sender,
    }


def _mined(block: Block, receipts: Sequence[Receipt]) -> Iterator[Json]:
    for index, (transaction, receipt) in enumerate(zip(block.transactions, receipts, strict=True)):
        created = receipt.contract_address
        info = {
            "transaction_hash": hex_bytes(transaction.hash),
            "transaction_index": index,
            "from": hex_bytes(transaction.sender or b""),
            "to": None if transaction.to is None else hex_bytes(transaction.to),
            "contract_address": None if created is None else hex_bytes(created),
            "traces": [],
            "exit": "Stop" if receipt.status else "Revert",
            "out": None,
            "nonce": transaction.nonce,
            "gas_used": receipt.gas_used,
        }
        yield {
            "info": info,
            "receipt": _receipt_json(receipt),
            "block_hash": hex_bytes(block.hash),
            "block_number": block.number,
        }


def _receipt_json(receipt: Receipt) -> Json:
    return {
        "type": quantity(receipt.tx_type),
        "status": quantity(receipt.status or 0),
        "cumulativeGasUsed": quantity(receipt.cumulative_gas_used),
        "logs": [
            {
                "address": hex_bytes(log.address),
                "topics": [hex_bytes(topic) for topic in log.topics],
                "data": hex_bytes(log.data),
            }
            for log in receipt.logs
        ],
        "logsBloom": hex_bytes(receipt.bloom),
    }


def _word(value: int) -> str:
    return hex_bytes(value.to_bytes(WORD_BYTES, "big"))


# --- reading --------------------------------------------------------------------------------------


def read_chain(found: Any) -> SavedChain:
    """Reads a state file. Raises ValueError with the invalid member.

    Ignores blocks that are not ancestors of the newest block.
    """
    if not isinstance(found, Mapping) or not isinstance(found.get("accounts"), Mapping):
        raise ValueError("accounts: expected an object, as anvil dumps it")
    try:
        receipts = _receipts_by_block(found.get("transactions") or ())
        blocks = [_read_block(item, receipts) for item in found.get("blocks") or ()]
        accounts = {name: _read_account(item) for name, item in found["accounts"].items()}
        environment = _read_environment(found.get("block"))
        states = {
            read_bytes(name, "historical_states", 32): _read_state(state)
            for name, state in found.get("historical_states") or ()
        }
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a state as anvil dumps it: {error!r}") from error
    return SavedChain(accounts, _joined(blocks), environment, states)


def _read_state(found: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the accounts of an older state, in the format of the newest state's accounts."""
    return {
        name: {
            "balance": account["balance"],
            "nonce": quantity(account["nonce"]),
            "code": _read_code(account.get("code")),
            "storage": dict(found["storage"].get(name) or {}),
        }
        for name, account in found["accounts"].items()
    }


def _read_code(found: Any) -> str:
    """Returns the code of an account from revm's format: padded bytecode, or a delegation."""
    if found is None:
        return "0x"
    ((kind, fields),) = found.items()
    if kind == "Eip7702":
        return hex_bytes(DELEGATION_PREFIX) + str(fields["delegated_address"])[2:]
    code: str = fields["bytecode"]
    return code[: 2 + 2 * int(fields["original_len"])]


def _read_account(found: Mapping[str, Any]) -> dict[str, Any]:
    nonce = found.get("nonce") or 0
    return {**found, "nonce": nonce if isinstance(nonce, str) else quantity(nonce)}


def _read_environment(found: Any) -> dict[str, Any]:
    if not isinstance(found, Mapping):
        return {}
    return {
        "number": _number(found, "number"),
        "timestamp": _number(found, "timestamp"),
        "coinbase": read_bytes(found.get("beneficiary") or found.get("coinbase"), "coinbase", 20),
        "gas_limit": _number(found, "gas_limit"),
        "base_fee_per_gas": _number(found, "basefee"),
    }


def _number(found: Mapping[str, Any], name: str) -> int:
    value = found.get(name) or 0
    return value if isinstance(value, int) else read_number(value, name)


def _receipts_by_block(found: Sequence[Any]) -> dict[str, list[Mapping[str, Any]]]:
    by_block: dict[str, list[Mapping[str, Any]]] = {}
    for item in found:
        by_block.setdefault(item["block_hash"], []).append(item)
    for mined in by_block.values():
        mined.sort(key=lambda item: int(item["info"]["transaction_index"]))
    return by_block


def _read_block(found: Any, receipts: Mapping[str, Any]) -> BlockAndReceipts:
    header = header_from_json(found["header"])
    block = Block(
        header,
        tuple(_read_transaction(item) for item in found.get("transactions") or ()),
        withdrawals=None if header.withdrawals_root is None else (),
    )
    mined = receipts.get(hex_bytes(block.hash), ())
    if len(mined) != len(block.transactions):
        raise ValueError(f"block {header.number}: {len(mined)} receipts of its transactions")
    read, before = [], 0
    for transaction, item in zip(block.transactions, mined, strict=True):
        read.append(_read_receipt(item, transaction, header, before))
        before = read[-1].cumulative_gas_used
    return block, tuple(read)


def _read_transaction(found: Mapping[str, Any]) -> Any:
    members = found.get("transaction", found)
    sender = found.get("impersonated_sender")
    if sender is None:
        return unchecked_transaction(members)
    named = int(sender, 16) or ADDRESS_LIMIT
    return with_named_sender(unchecked_transaction({**members, "r": hex(named), "s": "0x0"}))


def _read_receipt(
    found: Mapping[str, Any], transaction: Any, header: Header, gas_before: int
) -> Receipt:
    receipt, info = found["receipt"], found["info"]
    total, created = (
        read_number(receipt["cumulativeGasUsed"], "cumulativeGasUsed"),
        info.get("contract_address"),
    )
    return Receipt(
        tx_type=transaction.type,
        status=read_number(receipt["status"], "status"),
        post_state=None,
        cumulative_gas_used=total,
        logs=tuple(map(_read_log, receipt.get("logs") or ())),
        bloom=read_bytes(receipt["logsBloom"], "logsBloom"),
        gas_used=total - gas_before,
        effective_gas_price=transaction.effective_gas_price(header.base_fee_per_gas or 0),
        contract_address=None if created is None else read_bytes(created, "contract_address", 20),
    )


def _read_log(found: Mapping[str, Any]) -> Log:
    topics = tuple(read_bytes(topic, "topics", WORD_BYTES) for topic in found["topics"])
    return Log(
        read_bytes(found["address"], "address", 20), topics, read_bytes(found["data"], "data")
    )


def _joined(blocks: Sequence[BlockAndReceipts]) -> tuple[BlockAndReceipts, ...]:
    """Returns the newest consecutive blocks, oldest first."""
    by_hash = {block.hash: (block, receipts) for block, receipts in blocks}
    newest = max(blocks, key=lambda item: item[0].number, default=None)
    joined: list[BlockAndReceipts] = []
    while newest is not None:
        joined.append(newest)
        newest = by_hash.get(newest[0].header.parent_hash)
    return tuple(reversed(joined))
