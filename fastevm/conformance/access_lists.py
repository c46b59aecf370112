"""Block access lists (EIP-7928) of test files, and errors that concern access lists."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fastevm.conformance.fields import bytes_of, number_of
from fastevm.core.execution.block.block_access_list import (
    FIELD,
    AccountAccess,
    CodeChange,
    NumberChange,
    SlotChanges,
    encode_access_list,
)
from fastevm.errors import InvalidBlock

Json = Mapping[str, Any]

OF_THE_LIST: Final = frozenset(
    {
        "BlockException.INVALID_BLOCK_ACCESS_LIST",
        "BlockException.BLOCK_ACCESS_LIST_GAS_LIMIT_EXCEEDED",
    }
)
"""Exceptions that only an access list causes. The error must name the list or its hash."""


def list_of(block: Json) -> bytes | None:
    """Returns the RLP of the access list (valid or not) that a test supplies with a block, or
    None.
    """
    found = block.get("blockAccessList")
    if found is None:
        found = (block.get("rlp_decoded") or {}).get("blockAccessList")
    return None if found is None else encode_access_list([_account(item) for item in found])


def is_reason(expected: str, error: InvalidBlock) -> bool:
    """Returns whether a rejection concerns the access list, if ``expected`` says that it must."""
    return not OF_THE_LIST.issuperset(expected.split("|")) or error.field.startswith(FIELD)


def _account(fields: Json) -> AccountAccess:
    return AccountAccess(
        bytes_of(fields["address"]),
        tuple(
            SlotChanges(number_of(slot["slot"]), _numbers(slot["slotChanges"], "postValue"))
            for slot in fields["storageChanges"]
        ),
        tuple(number_of(key) for key in fields["storageReads"]),
        _numbers(fields["balanceChanges"], "postBalance"),
        _numbers(fields["nonceChanges"], "postNonce"),
        tuple(
            CodeChange(number_of(change["blockAccessIndex"]), bytes_of(change["newCode"]))
            for change in fields["codeChanges"]
        ),
    )


def _numbers(changes: Sequence[Json], member: str) -> tuple[NumberChange, ...]:
    return tuple(
        NumberChange(number_of(change["blockAccessIndex"]), number_of(change[member]))
        for change in changes
    )
