"""Block access lists (EIP-7928): values, RLP, and the differences between two lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, NoReturn

from fastevm.core.execution.types import Block
from fastevm.core.primitives import rlp
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.state.remote import RemoteState
from fastevm.core.state.source import Wanted
from fastevm.errors import InvalidBlock

FIELD: Final = "block_access_list"
EMPTY_LIST: Final = b"\xc0"  # the RLP of an empty list, as in a genesis block
_INDEX_BYTES: Final = 4
_NONCE_BYTES: Final = 8
_WORD_BYTES: Final = 32
_ADDRESS_BYTES: Final = 20
_ACCOUNT_FIELDS: Final = 6


class NumberChange(NamedTuple):
    """A new balance, nonce or slot value. ``at`` is the block access index that set it."""

    at: int
    value: int


class CodeChange(NamedTuple):
    """A code and the block access index that set it."""

    at: int
    code: bytes


class SlotChanges(NamedTuple):
    """The changes of one slot: its key and the new values."""

    key: int
    changes: tuple[NumberChange, ...]


class AccountAccess(NamedTuple):
    """The accesses to one account. An accessed slot is either in the changes or in the reads."""

    address: bytes
    storage_changes: tuple[SlotChanges, ...] = ()
    storage_reads: tuple[int, ...] = ()
    balance_changes: tuple[NumberChange, ...] = ()
    nonce_changes: tuple[NumberChange, ...] = ()
    code_changes: tuple[CodeChange, ...] = ()


AccessList = tuple[AccountAccess, ...]


def access_list_hash(encoded: bytes) -> bytes:
    """Returns the header's commitment to a list: Keccak-256 of its RLP."""
    return keccak256(encoded)


def item_count(accesses: Iterable[AccountAccess]) -> int:
    """Returns the number of addresses and distinct slots. The gas limit bounds this number."""
    return sum(1 + len(access.storage_changes) + len(access.storage_reads) for access in accesses)


def encode_access_list(accesses: Iterable[AccountAccess]) -> bytes:
    """Returns the RLP of a list without validating its values."""
    return rlp.encode(tuple(accesses))


def decode_access_list(encoded: bytes, number: int | None = None) -> AccessList:
    """Decodes a list. Raises InvalidBlock with the position of the first malformed item."""
    return _Reader(number).accesses(encoded)


def fetch_listed(state: RemoteState, block: Block, item_gas: int) -> None:
    """Fetches everything that a block's access list names from a remote state, in one request.

    ``item_gas``: gas per item of the list, 0 in forks without lists. The gas limit divided by it is
    the maximum number of items. Malformed and oversized lists are ignored here: the execution of
    the block reports the error.
    """
    if block.access_list is None or not item_gas or state.resolves:
        return
    try:
        accesses = decode_access_list(block.access_list, block.number)
    except InvalidBlock:
        return
    if item_count(accesses) > block.header.gas_limit // item_gas:
        return
    wanted = Wanted(accounts={access.address for access in accesses})
    for access in accesses:
        keys = (*(slot.key for slot in access.storage_changes), *access.storage_reads)
        wanted.slots.update((access.address, key) for key in keys)
    # Also loads the transactions' access lists (EIP-2930): the block's list lacks slots that no
    # code reads.
    for transaction in block.transactions:
        for entry in transaction.access_list:
            wanted.accounts.add(entry.address)
            wanted.slots.update((entry.address, key) for key in entry.storage_keys)
    state.fetch(wanted)


class _Reader:
    """Decodes an access list of block ``number`` and validates form, size and order."""

    def __init__(self, number: int | None) -> None:
        self.number = number

    def accesses(self, encoded: bytes) -> AccessList:
        try:
            items = rlp.decode(encoded)
        except ValueError as error:
            self.refuse(FIELD, "canonical RLP", str(error))
        found = tuple(
            self.account(item, f"{FIELD}[{position}]")
            for position, item in enumerate(self.list_of(items, FIELD))
        )
        self.ordered([item.address for item in found], FIELD)
        return found

    def account(self, item: Any, field: str) -> AccountAccess:
        parts = self.list_of(item, field, _ACCOUNT_FIELDS)
        address = self.data(parts[0], field + ".address")
        if len(address) != _ADDRESS_BYTES:
            self.refuse(field + ".address", f"{_ADDRESS_BYTES} bytes", f"{len(address)} bytes")
        changes = self.storage_changes(parts[1], field + ".storage_changes")
        reads = self.storage_reads(parts[2], field + ".storage_reads")
        twice = {change.key for change in changes} & set(reads)
        if twice:
            self.refuse(field + ".storage_reads", "no slot that is changed", hex(min(twice)))
        return AccountAccess(
            address,
            changes,
            reads,
            self.numbers(parts[3], _WORD_BYTES, field + ".balance_changes"),
            self.numbers(parts[4], _NONCE_BYTES, field + ".nonce_changes"),
            self.codes(parts[5], field + ".code_changes"),
        )

    def storage_changes(self, item: Any, field: str) -> tuple[SlotChanges, ...]:
        found = []
        for position, part in enumerate(self.list_of(item, field)):
            key, changes = self.list_of(part, f"{field}[{position}]", 2)
            slot = self.integer(key, _WORD_BYTES, f"{field}[{position}].key")
            values = self.numbers(changes, _WORD_BYTES, f"{field}[{position}].changes")
            if not values:
                self.refuse(f"{field}[{position}].changes", "a change", "none")
            found.append(SlotChanges(slot, values))
        self.ordered([item.key for item in found], field)
        return tuple(found)

    def storage_reads(self, item: Any, field: str) -> tuple[int, ...]:
        found = tuple(
            self.integer(part, _WORD_BYTES, f"{field}[{position}]")
            for position, part in enumerate(self.list_of(item, field))
        )
        self.ordered(found, field)
        return found

    def numbers(self, item: Any, size: int, field: str) -> tuple[NumberChange, ...]:
        found = []
        for position, part in enumerate(self.list_of(item, field)):
            index, value = self.list_of(part, f"{field}[{position}]", 2)
            found.append(
                NumberChange(
                    self.integer(index, _INDEX_BYTES, f"{field}[{position}].index"),
                    self.integer(value, size, f"{field}[{position}].value"),
                )
            )
        self.ordered([item.at for item in found], field)
        return tuple(found)

    def codes(self, item: Any, field: str) -> tuple[CodeChange, ...]:
        found = []
        for position, part in enumerate(self.list_of(item, field)):
            index, code = self.list_of(part, f"{field}[{position}]", 2)
            found.append(
                CodeChange(
                    self.integer(index, _INDEX_BYTES, f"{field}[{position}].index"),
                    self.data(code, f"{field}[{position}].code"),
                )
            )
        self.ordered([item.at for item in found], field)
        return tuple(found)

    def list_of(self, item: Any, field: str, size: int | None = None) -> list[Any]:
        if not isinstance(item, list):
            self.refuse(field, "a list", "a byte string")
        if size is not None and len(item) != size:
            self.refuse(field, f"{size} fields", f"{len(item)} fields")
        return item

    def data(self, item: Any, field: str) -> bytes:
        if not isinstance(item, bytes):
            self.refuse(field, "a byte string", "a list")
        return item

    def integer(self, item: Any, size: int, field: str) -> int:
        found = self.data(item, field)
        if len(found) > size:
            self.refuse(field, f"an integer of at most {size} bytes", f"{len(found)} bytes")
        if found[:1] == b"\x00":
            self.refuse(field, "an integer without leading zeros", found)
        return int.from_bytes(found, "big")

    def ordered(self, keys: Sequence[Any], field: str) -> None:
        for position in range(1, len(keys)):
            if keys[position - 1] >= keys[position]:
                self.refuse(f"{field}[{position}]", "more than the one before", keys[position])

    def refuse(self, field: str, expected: Any, found: Any) -> NoReturn:
        raise InvalidBlock(self.number, field, expected=expected, found=found)


def check_access_list(number: int, given: Sequence[AccountAccess], made: bytes) -> None:
    """Raises InvalidBlock if the list that came with the block differs from the recorded list.

    The error names the first account and slot that differ. ``made``: RLP of the recorded list.
    """
    for field, expected, found in _differences(decode_access_list(made), given):
        raise InvalidBlock(number, FIELD + field, expected=expected, found=found)


def _differences(
    made: Sequence[AccountAccess], given: Sequence[AccountAccess]
) -> Iterator[tuple[str, Any, Any]]:
    """Yields (position in the list, value in ``made``, value in ``given``) of each difference."""
    ours = {item.address: item for item in made}
    theirs = {item.address: item for item in given}
    for address in sorted(ours.keys() | theirs.keys()):
        field = f"[0x{address.hex()}]"
        mine, other = ours.get(address), theirs.get(address)
        if mine is None or other is None:
            yield field, _presence(mine), _presence(other)
        else:
            yield from _account_differences(field, mine, other)


def _presence(account: AccountAccess | None) -> str:
    return "no such account" if account is None else "the account"


def _account_differences(
    field: str, mine: AccountAccess, other: AccountAccess
) -> Iterator[tuple[str, Any, Any]]:
    for slot, expected, found in _unequal(_slots(mine), _slots(other)):
        yield f"{field}.storage[{slot:#x}]", expected or "no access", found or "no access"
    for name in ("balance", "nonce", "code"):
        ours, theirs = (dict(getattr(item, f"{name}_changes")) for item in (mine, other))
        for index, expected, found in _unequal(ours, theirs):
            yield (
                f"{field}.{name}[{index}]",
                "no change" if expected is None else expected,
                "no change" if found is None else found,
            )


def _slots(account: AccountAccess) -> dict[int, str]:
    """Returns by slot a text that describes the slot's entry in the list, for an error message."""
    said = dict.fromkeys(account.storage_reads, "a read")
    for key, changes in account.storage_changes:
        said[key] = "changes " + ", ".join(f"{index}: {value:#x}" for index, value in changes)
    return said


def _unequal(ours: dict[int, Any], theirs: dict[int, Any]) -> Iterator[tuple[int, Any, Any]]:
    for key in sorted(ours.keys() | theirs.keys()):
        mine, other = ours.get(key), theirs.get(key)
        if mine != other:
            yield key, mine, other
