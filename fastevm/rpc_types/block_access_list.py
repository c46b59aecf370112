"""A block access list as JSON (execution-apis, BlockAccessList; EIP-7928)."""

from collections.abc import Sequence
from typing import Any

from fastevm.core.execution.block.block_access_list import (
    EMPTY_LIST,
    AccountAccess,
    NumberChange,
    decode_access_list,
)
from fastevm.core.execution.types import EMPTY_LIST_HASH, Block
from fastevm.core.primitives.hex import hex_bytes, quantity

Json = dict[str, Any]


def kept_access_list(block: Block) -> bytes | None:
    """Returns the RLP of a block's access list.

    Returns None if the block has no list, or if its list was not kept.
    """
    if block.access_list is None and block.header.block_access_list_hash == EMPTY_LIST_HASH:
        return EMPTY_LIST
    return block.access_list


def access_list_json(encoded: bytes) -> list[Json]:
    """Returns the JSON form of an executed block's access list (RLP)."""
    return [_account(item) for item in decode_access_list(encoded)]


def _account(account_access: AccountAccess) -> Json:
    return {
        "address": hex_bytes(account_access.address),
        "storageChanges": [
            {
                "key": _word(slot.key),
                "changes": [
                    {"index": quantity(change.at), "value": _word(change.value)}
                    for change in slot.changes
                ],
            }
            for slot in account_access.storage_changes
        ],
        "storageReads": [_word(key) for key in account_access.storage_reads],
        "balanceChanges": _numbers(account_access.balance_changes),
        "nonceChanges": _numbers(account_access.nonce_changes),
        "codeChanges": [
            {"index": quantity(change.at), "code": hex_bytes(change.code)}
            for change in account_access.code_changes
        ],
    }


def _numbers(changes: Sequence[NumberChange]) -> list[Json]:
    return [{"index": quantity(change.at), "value": quantity(change.value)} for change in changes]


def _word(value: int) -> str:
    return hex_bytes(value.to_bytes(32, "big"))
