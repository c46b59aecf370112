"""Validates a block without executing it: its header, body, uncles, and a known result."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, NoReturn

from fastevm.core.execution.block.block_access_list import (
    access_list_hash,
    check_access_list,
    decode_access_list,
    item_count,
)
from fastevm.core.execution.block.block_result import RESULT_FIELDS, BlockResult
from fastevm.core.execution.block.fees import (
    FEE_PARAMETER_SIZES,
    FeeParameters,
    gas_limit_bounds,
    next_base_fee,
    next_excess_blob_gas,
)
from fastevm.core.execution.block.roots import ordered_root
from fastevm.core.execution.parallel.bal_executor import listed_items
from fastevm.core.execution.pow.difficulty import child_difficulty
from fastevm.core.execution.types import EMPTY_LIST_HASH, LATER_FIELDS, Block, Header
from fastevm.core.primitives import rlp
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.spec.schedule import ForkSchedule
from fastevm.errors import InvalidBlock

# Header fields that an execution computes, in the order of the checks; the state root comes last.
_OUTCOMES = (
    "gas_used",
    "logs_bloom",
    *(name for name in RESULT_FIELDS if name not in ("gas_used", "logs_bloom", "state_root")),
)


class Generation(NamedTuple):
    """An ancestor's header and the rules for its children.

    ``child_extra_data``: the extra data that a child must have, or None (EIP-779).
    """

    header: Header
    child_schedule: ForkSchedule
    child_extra_data: bytes | None = None


def validate_header(
    header: Header,
    parent: Header,
    schedule: ForkSchedule,
    *,
    extra_data: bytes | None = None,
    least_timestamp_step: int = 1,
    prefix: str = "",
) -> None:
    """Validates a header against its parent under the header's ``schedule``.

    Raises :class:`InvalidBlock`. Proof of work is not checked.

    - ``extra_data``: the exact extra data required (DAO fork, EIP-779)
    - ``least_timestamp_step``: minimum difference of the timestamps in seconds; 0 if blocks may
      share a second. Schedules with milliseconds always use 0.
    - ``prefix``: precedes the field name in errors
    """
    check = _Check(header, prefix, parent.number + 1)
    check.equal("parent_hash", parent.hash)
    check.equal("number", parent.number + 1)
    step = 0 if schedule.parameters["has_base_time"] else least_timestamp_step
    check.within("timestamp", parent.timestamp + step, None)
    for row in LATER_FIELDS:
        check.present(row.name, bool(schedule.parameters[row.flag]))
    check.within("gas_limit", *gas_limit_bounds(parent, schedule))
    check.within("gas_used", 0, header.gas_limit)
    _check_fees(check, parent, schedule)
    _check_extra_data(check, extra_data, int(schedule.parameters["max_extra_data_size"]))
    _check_fee_parameters(check, int(schedule.parameters["fee_parameters_version"]))
    if schedule.parameters["arbos_version"]:
        check.equal("difficulty", parent.difficulty)
        return
    check.equal("difficulty", child_difficulty(parent, schedule, header.timestamp))
    if schedule.parameters["proof_of_stake"]:
        check.equal("nonce", bytes(8))
        check.equal("ommers_hash", EMPTY_LIST_HASH)


def validate_body(block: Block, schedule: ForkSchedule) -> None:
    """Validates a body against its header without execution: hashes, roots, sizes, blob gas."""
    header, rules = block.header, schedule.parameters
    check = _Check(header, "", header.number)
    most = int(rules["max_block_rlp_size"])
    if most and block.size > most:
        check.fail("size", f"at most {most} bytes", f"{block.size} bytes")
    check.equal("transactions_root", transactions_root(block))
    check.equal("ommers_hash", ommers_hash(block))
    if rules["has_withdrawals"]:
        if block.withdrawals is None:
            check.fail("withdrawals", "a list", "nothing")
        if not rules["commits_to_withdrawals"]:
            check.equal("withdrawals_root", withdrawals_root(block))
        elif block.withdrawals:
            check.fail("withdrawals", "an empty list", f"{len(block.withdrawals)} withdrawals")
    elif block.withdrawals is not None:
        check.fail("withdrawals", "no such list", "a list")
    if rules["has_blobs"] and not rules["has_da_footprint"]:
        blobs = sum(len(transaction.blob_versioned_hashes) for transaction in block.transactions)
        check.equal("blob_gas_used", blobs * int(rules["blob_gas_per_blob"]))
    if block.access_list is not None:
        _check_given_access_list(check, block.access_list, rules)


def validate_result(header: Header, result: BlockResult, access_list: bytes | None = None) -> None:
    """Validates the result of an execution against the header.

    ``access_list``: the block access list that came with the block, if any; the error then names
    the first account and slot that differ.
    """
    check = _Check(header, "", header.number)
    for name in _OUTCOMES:
        check.equal(name, getattr(result, name))
    if result.access_list is not None:
        if access_list is not None and access_list != result.access_list:
            check_access_list(header.number, decode_access_list(access_list), result.access_list)
        check.equal("block_access_list_hash", access_list_hash(result.access_list))
    check.equal("state_root", result.state_root)


def validate_ommers(
    block: Block,
    *,
    schedule: ForkSchedule,
    ancestors: Mapping[bytes, Generation],
    included: Collection[bytes],
) -> None:
    """Validates the uncles of a block (Yellow Paper, section 11.1).

    ``ancestors``: the last ``max_uncle_depth + 1`` ancestors by hash. ``included``: hashes of the
    uncles that these ancestors contain.
    """
    rules, number = schedule.parameters, block.number
    if len(block.ommers) > int(rules["max_uncles"]):
        most = f"at most {rules['max_uncles']}"
        raise InvalidBlock(number, "ommers", expected=most, found=len(block.ommers))
    seen = set(included)
    for index, ommer in enumerate(block.ommers):
        field = f"ommers[{index}]"
        if ommer.hash in seen:
            raise InvalidBlock(
                number, field, expected="an uncle not included before", found=ommer.hash
            )
        seen.add(ommer.hash)
        if ommer.hash in ancestors:
            raise InvalidBlock(number, field, expected="no ancestor of the block", found=ommer.hash)
        parent = ancestors.get(ommer.parent_hash)
        if parent is None or ommer.parent_hash == block.header.parent_hash:
            expected = f"one of {rules['max_uncle_depth']} ancestors before the parent"
            raise InvalidBlock(
                number, field + ".parent_hash", expected=expected, found=ommer.parent_hash
            )
        _validate_ommer(ommer, parent, number, field)


def _validate_ommer(ommer: Header, parent: Generation, number: int, field: str) -> None:
    try:
        validate_header(
            ommer,
            parent.header,
            parent.child_schedule,
            extra_data=parent.child_extra_data,
            prefix=field + ".",
        )
    except InvalidBlock as error:
        raise InvalidBlock(
            number, error.field, expected=error.expected, found=error.found
        ) from None


def transactions_root(block: Block) -> bytes:
    """Returns the transactions root of the block."""
    return ordered_root([transaction.raw for transaction in block.transactions])


def withdrawals_root(block: Block) -> bytes:
    """Returns the withdrawals root of the block (EIP-4895).

    A block without withdrawals has the root of an empty list.
    """
    return ordered_root([withdrawal.rlp() for withdrawal in block.withdrawals or ()])


def ommers_hash(block: Block) -> bytes:
    """Returns Keccak-256 of the RLP list of the block's uncles."""
    if not block.ommers:
        return EMPTY_LIST_HASH
    return keccak256(rlp.encode([rlp.decode(ommer.rlp()) for ommer in block.ommers]))


def _check_given_access_list(
    check: _Check, encoded: bytes, rules: Mapping[str, int | bool]
) -> None:
    """Validates hash, form and size of an access list that came with the block."""
    if not rules["has_block_access_list"]:
        check.fail("block_access_list", "no such list", "a list")
    check.equal("block_access_list_hash", access_list_hash(encoded))
    items = listed_items(encoded)
    if items is None:
        items = item_count(decode_access_list(encoded, check.number))  # raises if malformed
    most = check.header.gas_limit // int(rules["block_access_item_gas"])
    if items > most:
        check.fail("block_access_list", f"at most {most} items", f"{items} items")


def _check_fees(check: _Check, parent: Header, schedule: ForkSchedule) -> None:
    rules = schedule.parameters
    if rules["has_base_fee"]:
        check.equal("base_fee_per_gas", next_base_fee(parent, schedule))
    if rules["has_blobs"]:
        most = int(rules["blob_gas_per_blob"]) * int(rules["blob_max"])
        if rules["has_da_footprint"]:
            most = check.header.gas_limit
        check.within("blob_gas_used", 0, most)
        check.equal("excess_blob_gas", next_excess_blob_gas(parent, schedule))


def _check_extra_data(check: _Check, demanded: bytes | None, most: int) -> None:
    if demanded is not None:
        check.equal("extra_data", demanded)
    size = len(check.header.extra_data)
    if size > most:
        check.fail("extra_data", f"at most {most} bytes", f"{size} bytes")


def _check_fee_parameters(check: _Check, version: int) -> None:
    """Validates the extra data's form (OP Stack specification, Holocene, Jovian)."""
    if version == 0:
        return
    found = FeeParameters.read(check.header.extra_data)
    if found is None or found.version != version or 0 in (found.denominator, found.elasticity):
        form = f"{FEE_PARAMETER_SIZES[version]} bytes of fee parameters"
        check.fail("extra_data", form, "0x" + check.header.extra_data.hex())


class _Check:
    """Compares the fields of a header with their expected values."""

    __slots__ = ("header", "number", "prefix")

    def __init__(self, header: Header, prefix: str, number: int) -> None:
        self.header = header
        self.prefix = prefix
        self.number = number

    def fail(self, field: str, expected: Any, found: Any) -> NoReturn:
        raise InvalidBlock(self.number, self.prefix + field, expected=expected, found=found)

    def equal(self, field: str, expected: Any) -> None:
        found = getattr(self.header, field)
        if found != expected:
            self.fail(field, expected, found)

    def within(self, field: str, least: int, greatest: int | None) -> None:
        found = getattr(self.header, field)
        if found < least or (greatest is not None and found > greatest):
            self.fail(
                field, f"at least {least}" if greatest is None else f"{least} to {greatest}", found
            )

    def present(self, field: str, wanted: bool) -> None:
        found = getattr(self.header, field)
        if wanted and found is None:
            self.fail(field, "a value", "nothing")
        if not wanted and found is not None:
            self.fail(field, "no such field", found)
