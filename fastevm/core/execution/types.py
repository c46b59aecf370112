"""Frozen values of the public API: accounts, headers, blocks, logs and receipts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from operator import attrgetter
from typing import Annotated, Any, NamedTuple, Self, get_args, get_type_hints

from msgspec import Struct

from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.primitives import rlp
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.primitives.replace import replace
from fastevm.core.state.values import Account, AccountProof, SlotProof
from fastevm.errors import InvalidBlock

__all__ = [
    "Account",
    "AccountProof",
    "Block",
    "BlockEnvironment",
    "Header",
    "Log",
    "Receipt",
    "SlotProof",
    "Transaction",
    "Withdrawal",
]

EMPTY_LIST_HASH = keccak256(rlp.encode([]))
EMPTY_ROOT = keccak256(rlp.encode(b""))
EMPTY_BLOOM = bytes(256)
NO_REQUESTS_HASH = sha256().digest()  # hash of an empty list of requests (EIP-7685)
ZERO_HASH = bytes(32)
ZERO_ADDRESS = bytes(20)

UINT64_BYTES = 8
WORD_BYTES = 32


class Item(NamedTuple):
    """Metadata of a header field; `HeaderField` explains the members."""

    json: str
    size: int
    fork: str = "Frontier"
    flag: str = ""
    empty: Any = None
    counts: bool = False


class HeaderField(NamedTuple):
    """A row of `HEADER_FIELDS`. The annotations of `Header` define all rows.

    - ``kind`` and ``size``: ("bytes", n) means exactly n bytes, ("int", n) an integer of at most n
      bytes, ("data", 0) any number of bytes
    - ``json``: name in a JSON-RPC block
    - ``fork``: the mainnet fork that added the field
    - ``flag``: name of the rules parameter that is true if headers have the field; empty for a
      field of all forks
    - ``empty``: the field's value in a block without content
    - ``counts``: whether the default value is the parent's value plus one
    """

    name: str
    kind: str
    size: int
    json: str
    fork: str
    flag: str
    empty: Any
    counts: bool


class Header(Struct, frozen=True, kw_only=True, dict=True):
    """A block header of any fork. A field that the block's fork does not have is None.

    Sizes: hashes and roots 32 bytes, ``coinbase`` 20, ``logs_bloom`` 256, ``nonce`` 8. Units: gas,
    fees in wei, ``timestamp`` in Unix seconds. ``mix_hash`` is PREVRANDAO after the merge. The
    fields are in the order of the RLP (Yellow Paper, 4.3, and the EIPs). `HEADER_FIELDS` is built
    from these annotations. The code for RLP, JSON, drafts and genesis, and the C struct of
    `header.pxd`, use `HEADER_FIELDS`.
    """

    parent_hash: Annotated[bytes, Item("parentHash", 32)] = ZERO_HASH
    ommers_hash: Annotated[bytes, Item("sha3Uncles", 32)] = EMPTY_LIST_HASH
    coinbase: Annotated[bytes, Item("miner", 20)] = ZERO_ADDRESS
    state_root: Annotated[bytes, Item("stateRoot", 32)] = EMPTY_ROOT
    transactions_root: Annotated[bytes, Item("transactionsRoot", 32)] = EMPTY_ROOT
    receipts_root: Annotated[bytes, Item("receiptsRoot", 32)] = EMPTY_ROOT
    logs_bloom: Annotated[bytes, Item("logsBloom", 256)] = EMPTY_BLOOM
    difficulty: Annotated[int, Item("difficulty", WORD_BYTES)] = 0
    number: Annotated[int, Item("number", UINT64_BYTES)] = 0
    gas_limit: Annotated[int, Item("gasLimit", UINT64_BYTES)] = 0
    gas_used: Annotated[int, Item("gasUsed", UINT64_BYTES)] = 0
    timestamp: Annotated[int, Item("timestamp", UINT64_BYTES)] = 0
    extra_data: Annotated[bytes, Item("extraData", 0)] = b""
    mix_hash: Annotated[bytes, Item("mixHash", 32)] = ZERO_HASH
    nonce: Annotated[bytes, Item("nonce", 8)] = bytes(8)
    base_fee_per_gas: Annotated[
        int | None, Item("baseFeePerGas", WORD_BYTES, "London", "has_base_fee", 0)
    ] = None
    withdrawals_root: Annotated[
        bytes | None, Item("withdrawalsRoot", 32, "Shanghai", "has_withdrawals", EMPTY_ROOT)
    ] = None
    blob_gas_used: Annotated[
        int | None, Item("blobGasUsed", UINT64_BYTES, "Cancun", "has_blobs", 0)
    ] = None
    excess_blob_gas: Annotated[
        int | None, Item("excessBlobGas", UINT64_BYTES, "Cancun", "has_blobs", 0)
    ] = None
    parent_beacon_block_root: Annotated[
        bytes | None, Item("parentBeaconBlockRoot", 32, "Cancun", "has_beacon_root", ZERO_HASH)
    ] = None
    requests_hash: Annotated[
        bytes | None, Item("requestsHash", 32, "Prague", "has_requests", NO_REQUESTS_HASH)
    ] = None
    block_access_list_hash: Annotated[
        bytes | None,
        Item("blockAccessListHash", 32, "Amsterdam", "has_block_access_list", EMPTY_LIST_HASH),
    ] = None
    slot_number: Annotated[
        int | None,
        Item("slotNumber", UINT64_BYTES, "Amsterdam", "has_slot_number", 0, counts=True),
    ] = None

    @classmethod
    def decode(cls, raw: bytes) -> Header:
        """Decodes a header from its RLP. Raises :class:`InvalidBlock` with the invalid field."""
        return cls.from_items(_decoded(raw, "header", None), field="header")

    @classmethod
    def from_items(cls, items: Any, *, field: str = "header", number: int | None = None) -> Header:
        """Returns the header with these decoded RLP items. Raises :class:`InvalidBlock`.

        ``field`` prefixes the field names in errors; ``number`` is the block number in errors if
        the header's own number cannot be decoded.
        """
        if not isinstance(items, list) or len(items) not in HEADER_SIZES:
            found = f"{len(items)} fields" if isinstance(items, list) else "a byte string"
            *sizes, largest = map(str, HEADER_SIZES)
            expected = f"{', '.join(sizes)} or {largest} fields"
            raise InvalidBlock(number, field, expected=expected, found=found)
        claimed = items[_NUMBER_INDEX]
        if isinstance(claimed, bytes) and len(claimed) <= UINT64_BYTES:
            number = int.from_bytes(claimed, "big")
        prefix = "" if field == "header" else field + "."
        values = {
            row.name: _field(item, row.kind, row.size, number, prefix + row.name)
            for row, item in zip(HEADER_FIELDS, items, strict=False)
        }
        return cls(**values)

    @property
    def prev_randao(self) -> bytes:
        """The beacon chain's randomness, which ``mix_hash`` contains after the merge (EIP-4399)."""
        return self.mix_hash

    @cached_property
    def hash(self) -> bytes:
        """The block hash: Keccak-256 of the header's RLP."""
        return keccak256(self.rlp())

    def under_hash(self, block_hash: bytes) -> Header:
        """Returns a copy with this hash, for chains whose block hash covers further fields."""
        copy = replace(self)
        copy.__dict__["hash"] = block_hash
        return copy

    def with_rlp(self, encoded: bytes) -> Header:
        """Stores ``encoded`` as the header's RLP, without a check, and returns this header."""
        self.__dict__["_encoded"] = encoded
        return self

    def rlp(self) -> bytes:
        """Returns the header's RLP.

        Raises ValueError if a field is None although a later field is set.
        """
        return self._encoded

    @cached_property
    def _encoded(self) -> bytes:
        values = list(_header_values(self))
        while values[-1] is None:
            values.pop()
        if None in values:
            missing = HEADER_FIELDS[values.index(None)].name
            raise ValueError(f"header field {missing} is missing although a later field is present")
        return rlp.encode(values)


def _read_fields() -> Iterator[HeaderField]:
    """Yields the rows of `HEADER_FIELDS` from the annotations of `Header`."""
    for name, annotation in get_type_hints(Header, include_extras=True).items():
        kind, item = get_args(annotation)
        is_number = int in (kind, *get_args(kind))
        form = "int" if is_number else "bytes" if item.size else "data"
        empty = getattr(NO_HEADER, name) if not item.flag else item.empty
        yield HeaderField(
            name, form, item.size, item.json, item.fork, item.flag, empty, item.counts
        )


NO_HEADER = Header()
# The header fields in RLP order.
HEADER_FIELDS: tuple[HeaderField, ...] = tuple(_read_fields())
# The header fields added after Frontier.
LATER_FIELDS = tuple(row for row in HEADER_FIELDS if row.flag)
# The JSON member names of the header, in output order.
JSON_FIELDS = (
    *sorted((row for row in HEADER_FIELDS if not row.flag), key=lambda row: row.json),
    *sorted(LATER_FIELDS, key=lambda row: row.kind != "int"),
)
# The possible numbers of header fields: one for each mainnet fork that added fields.
HEADER_SIZES = tuple({row.fork: index for index, row in enumerate(HEADER_FIELDS, 1)}.values())
_NUMBER_INDEX = [row.name for row in HEADER_FIELDS].index("number")
_header_values = attrgetter(*(row.name for row in HEADER_FIELDS))


class BlockEnvironment(Struct, frozen=True, kw_only=True):
    """The block context of a call. Fees are in wei, ``timestamp`` in seconds.

    ``l1_number``: the result of NUMBER on Arbitrum; if 0, NUMBER returns ``number``.
    ``header_base_fee``: the base fee of the header, which Arbitrum's precompiles see, if the call
    offers no gas price and ``base_fee`` is therefore 0; otherwise 0.
    """

    coinbase: bytes
    number: int
    timestamp: int
    gas_limit: int
    chain_id: int
    difficulty: int
    prev_randao: int
    base_fee: int
    blob_base_fee: int
    slot_number: int = 0
    l1_number: int = 0
    header_base_fee: int = 0

    @classmethod
    def of(
        cls,
        header: Header,
        *,
        chain_id: int,
        blob_base_fee: int,
        merged: bool,
        arbos: bool = False,
    ) -> Self:
        """Returns the environment of ``header``; ``merged``: whether opcode 0x44 is PREVRANDAO.

        ``arbos``: whether Arbitrum's rules apply. The L1 block number is then decoded from the mix
        hash of a header in Arbitrum's form, and the randomness is 1.
        """
        l1_number = 0
        randomness = int.from_bytes(header.mix_hash, "big") if merged else 0
        if arbos and header.difficulty == 1:
            l1_number, randomness = int.from_bytes(header.mix_hash[8:16], "big"), 1
        return cls(
            coinbase=header.coinbase,
            number=header.number,
            timestamp=header.timestamp,
            gas_limit=header.gas_limit,
            chain_id=chain_id,
            difficulty=0 if merged else header.difficulty,
            prev_randao=randomness,
            base_fee=header.base_fee_per_gas or 0,
            blob_base_fee=blob_base_fee,
            slot_number=header.slot_number or 0,
            l1_number=l1_number,
        )


class Withdrawal(Struct, frozen=True):
    """A withdrawal from the beacon chain (EIP-4895); ``amount`` in gwei."""

    index: int
    validator_index: int
    address: bytes
    amount: int

    @classmethod
    def from_items(cls, items: Any, *, field: str, number: int | None) -> Withdrawal:
        """Returns the withdrawal with these decoded RLP items.

        Raises InvalidBlock with ``field`` and ``number``.
        """
        if not isinstance(items, list) or len(items) != 4:
            found = f"{len(items)} fields" if isinstance(items, list) else "a byte string"
            raise InvalidBlock(number, field, expected="4 fields", found=found)
        return cls(
            index=_field(items[0], "int", UINT64_BYTES, number, field + ".index"),
            validator_index=_field(
                items[1], "int", UINT64_BYTES, number, field + ".validator_index"
            ),
            address=_field(items[2], "bytes", 20, number, field + ".address"),
            amount=_field(items[3], "int", UINT64_BYTES, number, field + ".amount"),
        )

    def rlp(self) -> bytes:
        """Returns the RLP, which is also the value in the withdrawals trie."""
        return rlp.encode(
            [
                _integer(self.index),
                _integer(self.validator_index),
                self.address,
                _integer(self.amount),
            ]
        )


@dataclass(frozen=True, slots=True)
class Block:
    """A block: header and body. ``withdrawals`` is None before Shanghai.

    ``access_list``: RLP of the block access list (EIP-7928), which is not part of the block's RLP;
    None if unknown, or if the block has none.
    """

    header: Header
    transactions: tuple[Transaction, ...] = ()
    ommers: tuple[Header, ...] = ()
    withdrawals: tuple[Withdrawal, ...] | None = None
    access_list: bytes | None = field(default=None, repr=False, compare=False)
    _encoded: bytes | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def hash(self) -> bytes:
        """The header's hash."""
        return self.header.hash

    @property
    def number(self) -> int:
        """The header's number."""
        return self.header.number

    def with_access_list(self, encoded: bytes | None) -> Block:
        """Returns an equal block with this block access list (RLP)."""
        if encoded == self.access_list:
            return self
        copy = replace(self, access_list=encoded)
        object.__setattr__(copy, "_encoded", self._encoded)
        return copy

    @property
    def size(self) -> int:
        """Returns the size of the block's RLP in bytes."""
        return len(self.rlp())

    def rlp(self) -> bytes:
        """Returns the block's RLP, with legacy transactions as lists, typed ones as strings."""
        if self._encoded is None:
            parts = [
                self.header.rlp(),
                _rlp_list(_embedded(transaction.raw) for transaction in self.transactions),
                _rlp_list(ommer.rlp() for ommer in self.ommers),
            ]
            if self.withdrawals is not None:
                parts.append(_rlp_list(withdrawal.rlp() for withdrawal in self.withdrawals))
            object.__setattr__(self, "_encoded", _rlp_list(parts))
        assert self._encoded is not None
        return self._encoded


class Log(Struct, frozen=True):
    """An event: the emitting address, up to four 32-byte topics, and data."""

    address: bytes
    topics: tuple[bytes, ...]
    data: bytes


class Receipt(Struct, frozen=True, kw_only=True):
    """The outcome of a transaction in its block.

    ``status`` is None before Byzantium, where ``post_state`` holds the state root instead. Prices
    are in wei. The blob fields are None for transactions without blobs. ``contract_address`` is
    None for transactions that create no contract.

    ``deposit_nonce`` is the sender's nonce before a deposit (OP Stack, from Regolith on). The
    encoding contains it only if ``deposit_receipt_version`` is set. ``l1_gas_used`` is the part of
    the gas that paid for data on L1 (Arbitrum).
    """

    tx_type: int
    status: int | None
    post_state: bytes | None
    cumulative_gas_used: int
    logs: tuple[Log, ...]
    bloom: bytes
    gas_used: int
    effective_gas_price: int
    contract_address: bytes | None = None
    blob_gas_used: int | None = None
    blob_gas_price: int | None = None
    deposit_nonce: int | None = None
    deposit_receipt_version: int | None = None
    l1_gas_used: int = 0

    def rlp(self) -> bytes:
        """Returns the receipt's encoding in the receipts trie: the RLP after the type's prefix
        (EIP-2718).
        """
        outcome = self.post_state if self.status is None else _integer(self.status)
        logs = tuple((log.address, log.topics, log.data) for log in self.logs)
        items: tuple[Any, ...] = (outcome or b"", self.cumulative_gas_used, self.bloom, logs)
        if self.deposit_receipt_version is not None:
            items += (self.deposit_nonce or 0, self.deposit_receipt_version)
        payload = rlp.encode(items)
        return payload if self.tx_type == 0 else bytes([self.tx_type]) + payload


def _integer(value: int) -> bytes:
    return value.to_bytes((value.bit_length() + 7) // 8, "big")


def _decoded(raw: bytes, name: str, number: int | None) -> Any:
    try:
        return rlp.decode(raw)
    except ValueError as error:
        raise InvalidBlock(number, name, expected="canonical RLP", found=str(error)) from None


def _field(item: Any, kind: str, size: int, number: int | None, name: str) -> Any:
    """Decodes a header field of ``kind`` and ``size`` (see `HeaderField`). Raises InvalidBlock."""
    if not isinstance(item, bytes):
        raise InvalidBlock(number, name, expected="a byte string", found="a list")
    if kind == "bytes":
        if len(item) != size:
            raise InvalidBlock(number, name, expected=f"{size} bytes", found=f"{len(item)} bytes")
        return item
    if kind == "data":
        return item
    if len(item) > size:
        expected = f"an integer of at most {size} bytes"
        raise InvalidBlock(number, name, expected=expected, found=f"{len(item)} bytes")
    if item[:1] == b"\x00":
        expected = "an integer without leading zeros"
        raise InvalidBlock(number, name, expected=expected, found=item)
    return int.from_bytes(item, "big")


def _embedded(raw: bytes) -> bytes:
    return raw if raw[:1] >= b"\xc0" else rlp.encode(raw)


def _rlp_list(parts: Iterable[bytes]) -> bytes:
    """Returns the RLP of a list of encoded items."""
    payload = b"".join(parts)
    if len(payload) < 56:
        return bytes([0xC0 + len(payload)]) + payload
    size = _integer(len(payload))
    return bytes([0xF7 + len(size)]) + size + payload
