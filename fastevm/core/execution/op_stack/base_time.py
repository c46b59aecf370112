"""BaseTime: the milliseconds of a block's timestamp, on Base from Denim on.

A block comes 200 ms after its parent. The header has the seconds. The second transaction of the
block is a deposit that writes the milliseconds within the second to slot 0 of a contract. No
transaction deploys this contract: its code is written to the state before the first block of Denim.
Source: Base's specification, Denim, "200 ms blocks".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fastevm.core.execution.op_stack.base_time_code import BASE_TIME_CODE
from fastevm.core.execution.op_stack.l1_attributes import DEPOSITOR
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.transaction.transaction_fields import DEPOSIT_TX
from fastevm.core.execution.types import Block, Header, Receipt
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.spec.schedule import ForkSchedule
from fastevm.core.state.layer import Layer
from fastevm.errors import InvalidBlock

BLOCK_MILLIS: Final = 200
SECOND_MILLIS: Final = 1_000
DEPOSIT_INDEX: Final = 1
DEPOSIT_GAS: Final = 1_000_000
SELECTOR: Final = bytes.fromhex("86bdf394")  # setTimestampMillisPart(uint16)
SOURCE_DOMAIN: Final = 3

BASE_TIME: Final = bytes.fromhex("4200000000000000000000000000000000000030")
IMPLEMENTATION: Final = bytes.fromhex("c0d3c0d3c0d3c0d3c0d3c0d3c0d3c0d3c0d30030")
PROXY_ADMIN: Final = bytes.fromhex("4200000000000000000000000000000000000018")
# ERC-1967
IMPLEMENTATION_SLOT: Final = 0x360894A13BA1A3210667C828492DB98DCA3E2076CC3735A920A3CA505D382BBC
ADMIN_SLOT: Final = 0xB53127684A568B3173AE13B9F8A6016E243E63B6E8EE1178D6A717850B5D6103


# --- the deposit ----------------------------------------------------------------------------------


def base_time_deposit(number: int, part: int) -> Transaction:
    """Returns the deposit that sets the milliseconds ``part`` of block ``number``."""
    inner = keccak256(number.to_bytes(32, "big"))
    return Transaction.build(
        type=DEPOSIT_TX,
        source_hash=keccak256(SOURCE_DOMAIN.to_bytes(32, "big") + inner),
        sender=DEPOSITOR,
        to=BASE_TIME,
        mint=0,
        value=0,
        gas_limit=DEPOSIT_GAS,
        is_system=False,
        data=SELECTOR + part.to_bytes(32, "big"),
    )


def is_base_time_deposit(transaction: Transaction) -> bool:
    """Returns whether the transaction is a deposit that sets the milliseconds."""
    return (
        transaction.type == DEPOSIT_TX
        and transaction.sender == DEPOSITOR
        and transaction.to == BASE_TIME
        and transaction.data[: len(SELECTOR)] == SELECTOR
    )


def millis_part(transactions: Sequence[Transaction]) -> int | None:
    """Returns the milliseconds that the second transaction of a block sets.

    Returns None if that transaction is not a BaseTime deposit, or if the value is not a multiple of
    200 below 1000.
    """
    if len(transactions) <= DEPOSIT_INDEX:
        return None
    found = transactions[DEPOSIT_INDEX]
    if not is_base_time_deposit(found):
        return None
    part = int.from_bytes(found.data[len(SELECTOR) :], "big")
    return part if part < SECOND_MILLIS and part % BLOCK_MILLIS == 0 else None


def timestamp_millis(header: Header, transactions: Sequence[Transaction]) -> int | None:
    """Returns the timestamp of a block in milliseconds, or None for a block before Denim."""
    part = millis_part(transactions)
    return None if part is None else header.timestamp * SECOND_MILLIS + part


def stored_part(layer: Layer) -> int:
    """Returns the milliseconds in the storage of the contract BaseTime."""
    return layer.storage(BASE_TIME, 0)


# --- validity -------------------------------------------------------------------------------------


def check_deposits(block: Block, schedule: ForkSchedule) -> None:
    """Raises InvalidBlock unless the second transaction, and no other, is a BaseTime deposit.

    Before Denim, no transaction may be a BaseTime deposit.
    """
    number = block.number
    active = bool(schedule.parameters["has_base_time"])
    for index, transaction in enumerate(block.transactions):
        if is_base_time_deposit(transaction) and not (active and index == DEPOSIT_INDEX):
            raise _invalid(number, index, "unexpected BaseTime metadata deposit")
    if not active:
        return
    part = millis_part(block.transactions)
    if part is None:
        raise _invalid(number, DEPOSIT_INDEX, "missing BaseTime metadata deposit at tx[1]")
    if block.transactions[DEPOSIT_INDEX].raw != base_time_deposit(number, part).raw:
        raise _invalid(number, DEPOSIT_INDEX, "wrong BaseTime metadata deposit at tx[1]")


def check_progression(
    block: Block, parent: Header, parent_part: int | None, schedule: ForkSchedule
) -> None:
    """Raises InvalidBlock unless the block comes 200 ms after its parent.

    ``parent_part``: milliseconds of the parent. None for a parent before Denim; the block's
    milliseconds must then be 0.
    """
    if not schedule.parameters["has_base_time"]:
        return
    part = millis_part(block.transactions) or 0
    if parent_part is None:
        if part:
            text = f"invalid first Denim BaseTime anchor: expected 0ms, got {part}ms"
            raise _invalid(block.number, DEPOSIT_INDEX, text)
        return
    before = parent.timestamp * SECOND_MILLIS + parent_part
    after = block.header.timestamp * SECOND_MILLIS + part
    if after != before + BLOCK_MILLIS:
        raise _invalid(
            block.number,
            DEPOSIT_INDEX,
            f"invalid BaseTime progression from {before}ms to {after}ms; expected exactly"
            f" {BLOCK_MILLIS}ms",
        )


def check_result(
    block: Block, receipts: Sequence[Receipt], layer: Layer, schedule: ForkSchedule
) -> None:
    """Raises InvalidBlock unless the deposit succeeded and the contract stores its milliseconds."""
    if not schedule.parameters["has_base_time"]:
        return
    part = millis_part(block.transactions)
    if not receipts[DEPOSIT_INDEX].status or stored_part(layer) != part:
        text = "BaseTime metadata transaction execution failed"
        raise _invalid(block.number, DEPOSIT_INDEX, text)


def _invalid(number: int, index: int, text: str) -> InvalidBlock:
    return InvalidBlock(number, f"transactions[{index}]", text=text)


# --- the contract ---------------------------------------------------------------------------------


def with_base_time(layer: Layer, number: int) -> Layer:
    """Returns the state with the code of BaseTime, on which the first block of Denim runs.

    Raises InvalidBlock if the state has no proxy for the contract.
    """
    if layer.storage(BASE_TIME, IMPLEMENTATION_SLOT):
        return layer
    admin = layer.storage(BASE_TIME, ADMIN_SLOT)
    if not layer.code(BASE_TIME) or admin != int.from_bytes(PROXY_ADMIN, "big"):
        raise InvalidBlock(number, "state", text="no proxy of BaseTime with the usual admin")
    return layer.with_accounts(
        {
            IMPLEMENTATION: {"code": BASE_TIME_CODE},
            BASE_TIME: {
                "storage": {IMPLEMENTATION_SLOT: int.from_bytes(IMPLEMENTATION, "big")},
            },
        }
    )


# --- the schedule ---------------------------------------------------------------------------------


def next_millis(parent: Header, parent_part: int | None, first_timestamp: int) -> tuple[int, int]:
    """Returns the timestamp (seconds) and the milliseconds of the next block.

    ``parent_part``: milliseconds of the parent. None for a parent before Denim. The next block is
    then the first block of Denim, and its time is ``first_timestamp``, computed from the old block
    time.
    """
    if parent_part is None:
        return first_timestamp, 0
    total = parent.timestamp * SECOND_MILLIS + parent_part + BLOCK_MILLIS
    return divmod(total, SECOND_MILLIS)
