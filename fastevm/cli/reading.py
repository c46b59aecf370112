"""Reads the input of the state-transition tool: accounts, environment and transactions."""

import sys
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from fastevm.cli.options import (
    BLOCK_HASH_FAULT,
    CONFIG_FAULT,
    IO_FAULT,
    JSON_FAULT,
    RLP_FAULT,
    STDIN,
    Options,
    ToolError,
)
from fastevm.conformance.fields import accounts_of, address_of, bytes_of, number_of
from fastevm.core.execution.block.fees import next_base_fee, next_excess_blob_gas
from fastevm.core.execution.block.header_draft import later_fields
from fastevm.core.execution.pow.difficulty import next_difficulty
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import (
    EMPTY_LIST_HASH,
    LATER_FIELDS,
    ZERO_HASH,
    Header,
    Withdrawal,
)
from fastevm.core.primitives import rlp
from fastevm.core.primitives.json_file import read_json
from fastevm.core.spec.blobs import BlobParameters, read_blob_schedule
from fastevm.core.spec.schedule import ForkSchedule
from fastevm.errors import InvalidBlock, TransactionDecodeError

Json = dict[str, Any]

ANCESTORS: Final = 256


class Inputs:
    """The decoded inputs by name. Standard input is read once, and only if an option names it.

    ``stdin``: the decoded standard input, from a caller in the same process.
    """

    def __init__(self, options: Options, stdin: Json | None = None) -> None:
        self.options = options
        if stdin is not None:
            self.stdin = stdin

    @cached_property
    def stdin(self) -> Json:
        try:
            content = sys.stdin.read().encode()
        except UnicodeError as error:
            raise ToolError(JSON_FAULT, f"failed unmarshalling stdin: {error}") from None
        value = _parsed(content, STDIN)
        if not isinstance(value, dict):
            raise ToolError(JSON_FAULT, "stdin: expected an object with alloc, env and txs")
        return value

    def read(self, name: str) -> Any:
        """Returns the JSON value of an input. Raises ToolError if it is missing or invalid."""
        location = self.options[f"input.{name}"]
        if location == STDIN:
            if name == "txs" and (self.stdin.get("txsRlp") or "txs" not in self.stdin):
                return self.stdin.get("txsRlp") or []
            if name not in self.stdin:
                raise ToolError(JSON_FAULT, f"stdin: has no {name}")
            return self.stdin[name]
        try:
            content = Path(location).read_bytes()
        except OSError as error:
            raise ToolError(IO_FAULT, f"failed reading {name} file: {error}") from None
        return _parsed(content, f"{name} file")

    def accounts(self) -> dict[bytes, Json]:
        """Returns the accounts before the block."""
        value = self.read("alloc")
        try:
            return accounts_of(value)
        except (ValueError, TypeError, AttributeError) as error:
            raise ToolError(JSON_FAULT, f"alloc: {error}") from None

    def blob_parameters(self) -> BlobParameters | None:
        """Returns the blob schedule that replaces the fork's, or None."""
        if not self.options["input.blobParams"]:
            return None
        try:
            return read_blob_schedule({"given": self.read("blobParams")})["given"]
        except (ValueError, KeyError) as error:
            raise ToolError(CONFIG_FAULT, f"blobParams: {error}") from None


def _parsed(content: bytes, location: str) -> Any:
    try:
        return read_json(content)
    except ValueError as error:
        raise ToolError(JSON_FAULT, f"failed unmarshalling {location}: {error}") from None


# --- the environment ------------------------------------------------------------------------------


class Environment(Struct, frozen=True):
    """The members of ``env``."""

    fields: Json

    def number(self, name: str) -> int | None:
        """Returns a number, or None if it is missing."""
        value = self.fields.get(name)
        try:
            return None if value is None else number_of(value)
        except (ValueError, TypeError, AttributeError):
            raise ToolError(JSON_FAULT, f"env: {name}: not a number: {value!r}") from None

    def required(self, name: str) -> int:
        """Returns a number. Raises ToolError if it is missing."""
        value = self.number(name)
        if value is None:
            raise ToolError(JSON_FAULT, f"env: missing required field {name!r}")
        return value

    def data(self, name: str, size: int) -> bytes | None:
        """Returns bytes, padded on the left, or None if missing."""
        value = self.fields.get(name)
        try:
            return None if value is None else bytes_of(value).rjust(size, b"\0")
        except (ValueError, TypeError, AttributeError):
            raise ToolError(JSON_FAULT, f"env: {name}: not hex: {value!r}") from None

    def ancestors(self) -> list[bytes]:
        """Returns the hashes of preceding blocks, parent first, with zeros for missing hashes."""
        number, given = self.required("currentNumber"), self.fields.get("blockHashes") or {}
        try:
            hashes = {number_of(key): bytes_of(value) for key, value in given.items()}
        except (ValueError, TypeError, AttributeError) as error:
            raise ToolError(JSON_FAULT, f"env: blockHashes: {error}") from None
        first = max(0, number - ANCESTORS)
        return [hashes.get(n, ZERO_HASH) for n in range(number - 1, first - 1, -1)]

    def known_block_hashes(self) -> set[int]:
        """Returns the numbers of the blocks whose hashes the environment has."""
        return {number_of(key) for key in self.fields.get("blockHashes") or ()}

    def refuse_block_hash(self, number: int | None) -> None:
        """Raises ToolError because block ``number``, whose hash was read, has no hash in the
        environment.

        Does nothing if ``number`` is None.
        """
        if number is None:
            return
        given = self.fields.get("blockHashes") is not None
        reason = "blockhash for that block not provided" if given else "no blockhashes provided"
        raise ToolError(BLOCK_HASH_FAULT, f"getHash({number}) invoked, {reason}")

    def ommers(self) -> tuple[Header, ...]:
        """Returns uncles with number and miner, which determine rewards."""
        number = self.required("currentNumber")
        try:
            return tuple(
                Header(number=number - number_of(o["delta"]), coinbase=address_of(o["address"]))
                for o in self.fields.get("ommers") or ()
            )
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ToolError(JSON_FAULT, f"env: ommers: {error!r}") from None

    def withdrawals(self, schedule: ForkSchedule) -> tuple[Withdrawal, ...] | None:
        """Returns the withdrawals, or None before Shanghai."""
        if not schedule.parameters["has_withdrawals"]:
            return None
        given = self.fields.get("withdrawals")
        if given is None:
            raise ToolError(
                CONFIG_FAULT, "Shanghai config but missing 'withdrawals' in env section"
            )
        try:
            return tuple(
                Withdrawal(
                    number_of(w["index"]),
                    number_of(w["validatorIndex"]),
                    address_of(w["address"]),
                    number_of(w["amount"]),
                )
                for w in given
            )
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ToolError(JSON_FAULT, f"env: withdrawals: {error!r}") from None

    def header(self, schedule: ForkSchedule) -> Header:
        """Returns the header draft. Missing fields are derived from the fields of the parent."""
        rules = schedule.parameters
        ancestors = self.ancestors()
        later: dict[str, Any] = {
            row.name: self.number(row.json) for row in LATER_FIELDS if row.counts
        }
        if rules["has_base_fee"]:
            later["base_fee_per_gas"] = self._base_fee(schedule)
        if rules["has_blobs"]:
            later["excess_blob_gas"] = self._excess_blob_gas(schedule)
        if rules["has_beacon_root"]:
            later["parent_beacon_block_root"] = self._beacon_root()
        return Header(
            parent_hash=ancestors[0] if ancestors else ZERO_HASH,
            coinbase=self.data("currentCoinbase", 20) or self._missing("currentCoinbase"),
            number=self.required("currentNumber"),
            gas_limit=self.required("currentGasLimit"),
            timestamp=self.required("currentTimestamp"),
            difficulty=self._difficulty(schedule),
            mix_hash=self._randomness(schedule),
            **later_fields(schedule, later),
        )

    def _missing(self, name: str) -> bytes:
        raise ToolError(JSON_FAULT, f"env: missing required field {name!r}")

    def _randomness(self, schedule: ForkSchedule) -> bytes:
        if not schedule.parameters["difficulty_is_randomness"]:
            return ZERO_HASH
        given = self.data("currentRandom", 32)
        if given is None:
            raise ToolError(CONFIG_FAULT, "post-merge requires currentRandom to be defined in env")
        return given

    def _beacon_root(self) -> bytes:
        given = self.data("parentBeaconBlockRoot", 32)
        if given is None:
            raise ToolError(
                CONFIG_FAULT, "post-cancun env requires parentBeaconBlockRoot to be set"
            )
        return given

    def _difficulty(self, schedule: ForkSchedule) -> int:
        given = self.number("currentDifficulty")
        if schedule.parameters["proof_of_stake"]:
            if given:
                raise ToolError(
                    CONFIG_FAULT, "post-merge difficulty must be zero (or omitted) in env"
                )
            return 0
        if given is not None:
            return given
        before, parent = self.number("parentTimestamp") or 0, self.number("parentDifficulty")
        number, timestamp = self.required("currentNumber"), self.required("currentTimestamp")
        lacking = "currentDifficulty was not provided, and cannot be calculated due to missing "
        if parent is None:
            raise ToolError(CONFIG_FAULT, lacking + "parentDifficulty")
        if number == 0:
            raise ToolError(
                CONFIG_FAULT, "currentDifficulty needs to be provided for block number 0"
            )
        if timestamp <= before:
            raise ToolError(
                CONFIG_FAULT,
                f"currentDifficulty cannot be calculated -- currentTime ({timestamp}) needs to be "
                f"after parent time ({before})",
            )
        uncles = self.data("parentUncleHash", 32) or EMPTY_LIST_HASH
        return next_difficulty(
            schedule,
            number=number,
            timestamp=timestamp,
            parent_timestamp=before,
            parent_difficulty=parent,
            parent_has_ommers=uncles not in (EMPTY_LIST_HASH, ZERO_HASH),
        )

    def _base_fee(self, schedule: ForkSchedule) -> int:
        given = self.number("currentBaseFee")
        if given is not None:
            return given
        fee, number = self.number("parentBaseFee"), self.required("currentNumber")
        if fee is None or number == 0:
            raise ToolError(
                CONFIG_FAULT, "EIP-1559 config but missing 'parentBaseFee' in env section"
            )
        parent = Header(
            base_fee_per_gas=fee,
            gas_used=self.number("parentGasUsed") or 0,
            gas_limit=self.number("parentGasLimit") or 0,
        )
        return next_base_fee(parent, schedule)

    def knows_excess_blob_gas(self) -> bool:
        """Returns whether the excess blob gas is given, or follows from the parent."""
        names = ("parentExcessBlobGas", "parentBlobGasUsed")
        return self.fields.get("currentExcessBlobGas") is not None or all(
            self.fields.get(name) is not None for name in names
        )

    def _excess_blob_gas(self, schedule: ForkSchedule) -> int:
        given = self.number("currentExcessBlobGas")
        if given is not None:
            return given
        parent = Header(
            base_fee_per_gas=self.number("parentBaseFee"),
            blob_gas_used=self.number("parentBlobGasUsed") or 0,
            excess_blob_gas=self.number("parentExcessBlobGas") or 0,
        )
        return next_excess_blob_gas(parent, schedule)


# --- transactions ---------------------------------------------------------------------------------


def transactions_of(
    given: Any, schedule: ForkSchedule, chain_id: int
) -> Iterator[Transaction | str]:
    """Returns the transactions in order, with an error text in place of each invalid
    transaction.
    """
    if isinstance(given, str):
        yield from _from_rlp(given)
        return
    if not isinstance(given, list):
        if given is None:
            return
        raise ToolError(JSON_FAULT, "txs: expected a list of transactions")
    for fields in given:
        try:
            yield _from_json(fields, schedule, chain_id)
        except (TransactionDecodeError, OverflowError) as error:
            yield str(error)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ToolError(JSON_FAULT, f"txs: {error!r}") from None


def _from_rlp(text: str) -> Iterator[Transaction | str]:
    try:
        items = rlp.decode(bytes_of(text))
    except ValueError as error:
        raise ToolError(RLP_FAULT, f"txs: {error}") from None
    if not isinstance(items, list):
        raise ToolError(RLP_FAULT, "txs: expected a list of transactions")
    for item in items:
        try:
            yield Transaction.decode(rlp.encode(item) if isinstance(item, list) else item)
        except (TransactionDecodeError, InvalidBlock) as error:
            yield str(error)


_NUMBERS: Final[Mapping[str, str]] = {
    "nonce": "nonce",
    "gasPrice": "gas_price",
    "maxFeePerGas": "max_fee_per_gas",
    "maxPriorityFeePerGas": "max_priority_fee_per_gas",
    "maxFeePerBlobGas": "max_fee_per_blob_gas",
    "value": "value",
    "r": "r",
    "s": "s",
}


def _from_json(fields: Mapping[str, Any], schedule: ForkSchedule, chain_id: int) -> Transaction:
    values: Json = {
        name: number_of(fields[member])
        for member, name in _NUMBERS.items()
        if fields.get(member) is not None
    }
    kind = number_of(fields["type"]) if fields.get("type") is not None else None
    values["gas_limit"] = number_of(_either(fields, "gas", "gasLimit"))
    values["data"] = bytes_of(_either(fields, "input", "data") or "0x")
    values["to"] = address_of(fields["to"]) if fields.get("to") else None
    values["v"] = number_of(_either(fields, "v", "yParity", "y_parity") or 0)
    values |= _lists_of(fields)
    if kind is None:
        typed = {"max_fee_per_gas", "access_list", "authorization_list"} & values.keys()
        kind = None if typed else 0
    if kind == 0:
        values.pop("access_list", None)
    else:
        given = fields.get("chainId")
        values["chain_id"] = chain_id if given is None else number_of(given)
    return _signed(Transaction.build(type=kind, **values), fields, schedule, chain_id)


def _signed(
    transaction: Transaction, fields: Mapping[str, Any], schedule: ForkSchedule, chain_id: int
) -> Transaction:
    """Signs a transaction if it has ``secretKey`` and no signature. Decodes the result."""
    if not fields.get("secretKey") or transaction.r or transaction.s:
        return Transaction.decode(transaction.raw)
    protects = schedule.parameters["has_chain_id_in_signature"] and fields.get("protected", True)
    key = bytes_of(fields["secretKey"]).rjust(32, b"\0")
    if transaction.type != 0:
        return transaction.sign(key)
    return transaction.sign(key, chain_id=chain_id if protects else None)


def _either(fields: Mapping[str, Any], *names: str) -> Any:
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def _lists_of(fields: Mapping[str, Any]) -> Json:
    values: Json = {}
    if fields.get("accessList") is not None:
        values["access_list"] = [
            (address_of(item["address"]), [number_of(key) for key in item["storageKeys"] or ()])
            for item in fields["accessList"]
        ]
    if fields.get("blobVersionedHashes") is not None:
        values["blob_versioned_hashes"] = [bytes_of(h) for h in fields["blobVersionedHashes"]]
    if fields.get("authorizationList") is not None:
        values["authorization_list"] = [
            (
                number_of(item["chainId"]),
                address_of(item["address"]),
                number_of(item["nonce"]),
                number_of(_either(item, "yParity", "v")),
                number_of(item["r"]),
                number_of(item["s"]),
            )
            for item in fields["authorizationList"]
        ]
    return values
