"""Executes a case on fastevm through its public API, and reports differences.

First executes every transaction of the case, as a block builder does. Then imports the block of the
valid transactions: decodes it from RLP, validates it against its parent, executes it. Finally
imports the block with one wrong header field at a time. fastevm must reject each of these blocks.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

from fastevm.chain.block_entry import BlockEntry, check_unexecuted, child_schedule
from fastevm.chain.config import ChainConfig
from fastevm.chain.irregular_changes import state_before
from fastevm.core.execution.block.block import BlockBuilder, execute_block
from fastevm.core.execution.block.block_decoding import decode_block
from fastevm.core.execution.block.validation import validate_result
from fastevm.core.execution.op_stack.l1_attributes import L1Attributes, attributes_of
from fastevm.core.execution.op_stack.l1_fees import da_footprint_of, l1_data_fee_of, operator_fee_of
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Block, Header, Receipt
from fastevm.core.primitives import rlp
from fastevm.core.primitives.hex import hex_bytes
from fastevm.core.spec.activation import Activations
from fastevm.core.state.layer import Layer
from fastevm.errors import FastevmError
from tests.differential.machine import dump, state_of, unhexed

from .generator import CONSTANTS
from .signing import created_by
from .specification.forks import Fork
from .specification.headers import BEFORE_CANYON_DENOMINATOR

Fields = dict[str, Any]
KEYS = {
    Fork.REGOLITH: "regolithTime",
    Fork.CANYON: "canyonTime",
    Fork.ECOTONE: "ecotoneTime",
    Fork.FJORD: "fjordTime",
    Fork.GRANITE: "graniteTime",
    Fork.HOLOCENE: "holoceneTime",
    Fork.ISTHMUS: "isthmusTime",
    Fork.JOVIAN: "jovianTime",
    Fork.KARST: "karstTime",
}
LEGACY = 0xC0
ANCESTORS = 256
# Positions of fields in the RLP list of a header.
DIFFICULTY, GAS_LIMIT, GAS_USED, TIMESTAMP, EXTRA_DATA, NONCE, BASE_FEE = 7, 9, 10, 11, 12, 14, 15
STATE_ROOT, RECEIPTS_ROOT, BLOOM = 3, 5, 6
WITHDRAWALS_ROOT, BLOB_GAS_USED, EXCESS_BLOB_GAS, REQUESTS_HASH = 16, 17, 18, 20


@cache
def config_of(chain_id: int, fork: Fork, begins: int) -> ChainConfig:
    """Returns a chain on which ``fork`` begins at the time ``begins``, all earlier forks at 0."""
    times = {KEYS[known]: 0 for known in Fork if Fork.BEDROCK < known < fork}
    if fork > Fork.BEDROCK:
        times[KEYS[fork]] = begins
    fees = {
        "eip1559Elasticity": CONSTANTS.elasticity,
        "eip1559Denominator": BEFORE_CANYON_DENOMINATOR,
        "eip1559DenominatorCanyon": CONSTANTS.denominator,
    }
    genesis = {"bedrockBlock": 0, **times, "optimism": fees}
    return ChainConfig(chain_id=chain_id, activations=Activations.from_genesis_config(genesis))


class Import:
    """A case as fastevm imports it: chain configuration, parent, and the state before the block."""

    def __init__(self, case: Fields, expected: Fields) -> None:
        self.case = case
        self.expected = expected
        self.fork = Fork.named(case["fork"])
        self.is_first = case["fork"] != case["parent_fork"]
        self.timestamp = case["block"]["timestamp"]
        begins = self.timestamp if self.is_first else 0
        self.config = config_of(case["chain_id"], self.fork, begins)
        header = Header.from_items(rlp.decode(unhexed(expected["parent"])))
        schedule = self.config.activations.at(header.number, header.timestamp, after_merge=True)
        self.parent = BlockEntry(Block(header), schedule, 0, (), None)
        self.schedule = child_schedule(self.config, self.parent, self.timestamp)
        known = (header.hash, *(unhexed(item) for item in reversed(case["ancestors"])))
        self.options: Fields = {
            "chain_id": self.config.chain_id,
            "deposit_contract": self.config.deposit_contract,
            "ancestors": known[:ANCESTORS],
        }

    def state(self) -> Layer:
        """Returns the state before the block."""
        layer = state_of(self.case["pre"])
        header = self.parent.block.header
        return state_before(self.config.activations, layer, header, self.timestamp)

    def header_items(self) -> list[Any]:
        items: list[Any] = rlp.decode(unhexed(self.expected["header"]))
        return items

    def block(self, header: list[Any]) -> Block:
        """Returns the block that has this header and the valid transactions."""
        pairs = zip(self.case["transactions"], self.expected["transactions"], strict=True)
        raw = [unhexed(text) for text, outcome in pairs if outcome["valid"]]
        transactions = [rlp.decode(item) if item[0] >= LEGACY else item for item in raw]
        withdrawals = [[]] if len(header) > WITHDRAWALS_ROOT else []
        return decode_block(rlp.encode([header, transactions, [], *withdrawals]))

    def execute(self, block: Block) -> Layer:
        """Returns the state after the block. Raises FastevmError if the block is rejected."""
        check_unexecuted(self.config, block, self.parent, self.schedule)
        result = execute_block(self.state(), block, self.schedule, **self.options)
        validate_result(block.header, result)
        return result.layer


def differences(case: Fields, expected: Fields) -> list[str]:
    """Returns descriptions of fastevm's differences from the expected outcome.

    Later stages are only compared if earlier stages agree.
    """
    imported = Import(case, expected)
    found = candidate_differences(imported)
    if found:
        return found
    found = import_differences(imported)
    return found or fee_differences(imported) or header_differences(imported)


def candidate_differences(imported: Import) -> list[str]:
    """Returns the differences in validity and receipts of the case's transactions."""
    expected = imported.expected
    header = Header.from_items(imported.header_items())
    builder = BlockBuilder(
        imported.state(), header, imported.schedule,
        withdrawals=None if header.withdrawals_root is None else (), **imported.options,
    )  # fmt: skip
    builder.begin()
    pairs = zip(imported.case["transactions"], expected["transactions"], strict=True)
    for index, (text, theirs) in enumerate(pairs):
        # `BlockBuilder` does not know the parent, so it cannot reject users' transactions in a
        # fork's first block. The import does.
        if not theirs["valid"] and theirs["reason"].startswith("only deposits"):
            continue
        try:
            transaction = Transaction.decode(unhexed(text))
            receipt = builder.add(transaction)
        except FastevmError as error:
            if theirs["valid"]:
                return [f"transaction {index} is refused ({error}), but valid"]
            continue
        if not theirs["valid"]:
            return [f"transaction {index} is taken, but {theirs['reason']}"]
        words = receipt_differences(transaction, receipt, theirs, imported.fork)
        if words:
            return [f"transaction {index}: {words}"]
    return state_differences(dump(builder.snapshot()), expected["post"])


def receipt_differences(
    transaction: Transaction, receipt: Receipt, theirs: Fields, fork: Fork
) -> str:
    """Returns the differences in transaction hash, encoded receipt and reported values."""
    reported = {
        "hash": (hex_bytes(transaction.hash), theirs["hash"]),
        "receipt": (hex_bytes(receipt.rlp()), theirs["receipt"]),
        "gas used": (receipt.gas_used, theirs["gas_used"]),
    }
    if transaction.source_hash is not None and fork >= Fork.REGOLITH:
        reported["deposit nonce"] = (receipt.deposit_nonce, theirs["deposit_nonce"])
        if transaction.to is None:
            made = created_by(unhexed(theirs["sender"]), theirs["deposit_nonce"])
            reported["contract"] = (receipt.contract_address, made)
    return "; ".join(
        f"{name} {ours} and not {other} ({theirs['error']})"
        for name, (ours, other) in reported.items()
        if ours != other
    )


def state_differences(ours: Fields, theirs: Fields) -> list[str]:
    """Returns the accounts that differ."""
    found = []
    for address in sorted(ours.keys() | theirs.keys()):
        account = theirs.get(address)
        listed = None
        if account:
            listed = [account[part] for part in ("nonce", "balance", "code", "storage")]
        if ours.get(address) != listed:
            found.append(f"account {address} is {ours.get(address)} and not {listed}")
    return found


def import_differences(imported: Import) -> list[str]:
    """Imports the valid block. Returns the difference in block hash, validity or post-state."""
    block = imported.block(imported.header_items())
    if hex_bytes(block.hash) != imported.expected["hash"]:
        return [f"the block's hash is {hex_bytes(block.hash)}"]
    try:
        layer = imported.execute(block)
    except FastevmError as error:
        return [f"the block is refused: {error}"]
    return state_differences(dump(layer), imported.expected["post"])


def fee_differences(imported: Import) -> list[str]:
    """Returns the differences in fees that fastevm computes from the calldata of the attributes."""
    attributes = attributes_of(imported.block(imported.header_items()).transactions)
    if attributes is None:
        return []
    # Without Ecotone's scalars, the fees depend on slots that Ecotone's calldata do not set.
    if imported.fork >= Fork.ECOTONE and not is_reported(attributes) and not imported.is_first:
        return []
    schedule, found = imported.schedule, []
    pairs = zip(imported.case["transactions"], imported.expected["transactions"], strict=True)
    for index, (text, theirs) in enumerate(pairs):
        if not theirs["valid"] or theirs["deposit_nonce"] is not None:
            continue
        raw = unhexed(text)
        reported = {
            "L1 fee": (
                l1_data_fee_of(raw, attributes, schedule),
                (theirs["l1_fee"], theirs["l1_gas_used"]),
            ),
            "operator fee": (
                operator_fee_of(theirs["gas_used"], attributes, schedule),
                theirs["operator_fee"],
            ),
        }
        if imported.fork >= Fork.JOVIAN:
            reported["footprint"] = (da_footprint_of(raw, attributes), theirs["footprint"])
        found += [
            f"transaction {index}: {name} {ours} and not {other}"
            for name, (ours, other) in reported.items()
            if ours != other
        ]
    return found


def is_reported(attributes: L1Attributes) -> bool:
    return bool(attributes.base_fee_scalar or attributes.blob_base_fee_scalar)


def header_differences(imported: Import) -> list[str]:
    """Imports blocks with a wrong header. Returns those that fastevm accepts."""
    found = []
    for name, items in wrong_headers(imported):
        try:
            imported.execute(imported.block(items))
        except FastevmError:
            continue
        found.append(f"a header with {name} is taken")
    return found


def wrong_headers(imported: Import) -> Iterator[tuple[str, list[Any]]]:
    """Yields a header with one wrong field for each rule of the fork, with the name of the rule."""
    right, fork = imported.header_items(), imported.fork

    def number(place: int) -> int:
        return int.from_bytes(right[place], "big")

    def wrong(name: str, place: int, value: int | bytes) -> tuple[str, list[Any]]:
        data = value if isinstance(value, bytes) else number_bytes(value)
        return name, [*right[:place], data, *right[place + 1 :]]

    yield wrong("another base fee", BASE_FEE, number(BASE_FEE) + 1)
    yield wrong("another gas used", GAS_USED, number(GAS_USED) + 1)
    if number(GAS_USED):
        yield wrong("a gas limit below gas used", GAS_LIMIT, number(GAS_USED) - 1)
    yield wrong("a difficulty", DIFFICULTY, 1)
    yield wrong("a nonce", NONCE, bytes(7) + b"\1")
    yield wrong("the parent's timestamp", TIMESTAMP, imported.parent.block.header.timestamp)
    for name, place in (("state", STATE_ROOT), ("receipts", RECEIPTS_ROOT)):
        yield wrong(f"another {name} root", place, bytes(32))
    yield wrong("another bloom", BLOOM, bytes([right[BLOOM][0] ^ 1]) + right[BLOOM][1:])
    if fork >= Fork.CANYON:
        yield wrong("another withdrawals root", WITHDRAWALS_ROOT, bytes(32))
    if fork >= Fork.ECOTONE:
        yield wrong("another blob gas used", BLOB_GAS_USED, number(BLOB_GAS_USED) + 1)
        yield wrong("excess blob gas", EXCESS_BLOB_GAS, 1)
    if fork >= Fork.HOLOCENE:
        forms = [b"", bytes(9), bytes(17), b"\2" + right[EXTRA_DATA][1:], right[EXTRA_DATA] + b"\0"]
        other = 17 if fork < Fork.JOVIAN else 9
        forms.append(bytes([fork < Fork.JOVIAN]) + b"\0\0\0\1" * 2 + bytes(other - 9))
        for form in forms:
            yield wrong(f"extra data {form.hex()}", EXTRA_DATA, form)
    if fork >= Fork.ISTHMUS:
        yield wrong("another requests hash", REQUESTS_HASH, bytes(32))


def number_bytes(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8, "big")


def is_taken(case: Fields, expected: Fields) -> bool:
    """Returns whether fastevm accepts the block of the valid transactions."""
    imported = Import(case, expected)
    try:
        imported.execute(imported.block(imported.header_items()))
    except FastevmError:
        return False
    return True
