"""Executes a case on fastevm as one block.

Each transaction also runs alone, because a block's receipts do not contain the output.
"""

from typing import Any

from fastevm.core.execution.block.block import BlockBuilder, execute_block
from fastevm.core.execution.block.block_result import BlockResult
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Header, Withdrawal
from fastevm.core.primitives.hex import hex_bytes
from fastevm.core.primitives.replace import replace
from fastevm.core.spec.schedule import ForkSchedule, schedule_for
from fastevm.errors import FastevmError, InvalidTransaction
from fastevm.evm.machine import EVM
from tests.differential.cases import KEYS, PEOPLE, Case, Fields
from tests.differential.machine import (
    Outcome,
    ancestors_of,
    block_of,
    dump,
    state_of,
    transaction_of,
    unhexed,
)
from tests.differential.machine import run_transaction as run_alone

DEPOSIT_CONTRACT = b"\x0d" * 20


def header_of(block: Fields) -> Header:
    """Returns the header for building a case's block, before its roots and hashes are computed."""
    return Header(
        parent_hash=ancestors_of(block["number"])[0],
        coinbase=unhexed(block["coinbase"]),
        number=block["number"],
        gas_limit=block["gas_limit"],
        timestamp=block["timestamp"],
        mix_hash=block["prev_randao"].to_bytes(32, "big"),
        base_fee_per_gas=block["base_fee"],
        withdrawals_root=bytes(32),
        blob_gas_used=0,
        excess_blob_gas=block["excess_blob_gas"],
        parent_beacon_block_root=bytes(32),
        requests_hash=bytes(32),
        block_access_list_hash=bytes(32),
        slot_number=block["slot_number"],
    )


def withdrawals_of(block: Fields) -> list[Withdrawal]:
    return [
        Withdrawal(index, 0, unhexed(address), amount)
        for index, (address, amount) in enumerate(block["withdrawals"])
    ]


def signed(fields: Fields) -> Transaction:
    """Returns the transaction as its sender signs it."""
    key = KEYS[PEOPLE.index(unhexed(fields["sender"]))]
    return transaction_of({**fields, "sender": None}).sign(key, chain_id=1)


class Run:
    """An execution of a case on fastevm."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.schedule: ForkSchedule = schedule_for(case.fork)
        self.layer = state_of(case.pre)
        self.options: dict[str, Any] = {
            "chain_id": 1, "deposit_contract": DEPOSIT_CONTRACT,
            "ancestors": ancestors_of(case.block["number"]),
        }  # fmt: skip
        self.builder = BlockBuilder(
            self.layer, header_of(case.block), self.schedule,
            withdrawals=withdrawals_of(case.block), **self.options,
        )  # fmt: skip
        self.evm = EVM(case.fork)
        environment = replace(case, block=without_body(case.block))
        self.evm.set_block(**block_of(environment, self.schedule))

    def outcome(self) -> Outcome:
        """Returns all comparable values of the run."""
        self.builder.begin()
        outcomes = [self.add(fields) for fields in self.case.transactions]
        try:
            block, result = self.builder.seal()
        except FastevmError as refusal:
            return {"transactions": outcomes, "refusal": str(refusal)}
        again = execute_block(self.layer, block, self.schedule, **self.options)
        assert parts_of(again) == parts_of(result), "imported otherwise than built"
        assert result.access_list is not None
        return {
            "transactions": outcomes,
            "requests": [hex_bytes(item) for item in result.requests],
            "access_list": hex_bytes(result.access_list),
            "state": dump(result.layer),
            "root": hex_bytes(result.state_root),
        }

    def add(self, fields: Fields) -> Outcome:
        """Executes the next transaction outside the block, for its output, then in the block."""
        self.evm.state = self.builder.snapshot()
        alone = run_alone(self.evm, fields)
        try:
            receipt = self.builder.add(signed(fields))
        except InvalidTransaction as refusal:
            return {"status": "rejected", "reason": str(refusal)}
        reported = (receipt.status == 1, receipt.gas_used)
        assert reported == (alone["status"] == "success", alone["gas_used"]), (reported, alone)
        return {**alone, "block_gas": self.builder.gas_used}


def without_body(block: Fields) -> Fields:
    return {name: value for name, value in block.items() if name != "withdrawals"}


def parts_of(result: BlockResult) -> tuple[Any, ...]:
    receipts = tuple(receipt.rlp() for receipt in result.receipts)
    return (
        result.state_root, receipts, result.gas_used, result.requests, result.access_list,
        result.logs_bloom,
    )  # fmt: skip


def run(case: Case) -> Outcome:
    """Executes a case as a block. Returns the outcome with the state after the block."""
    return Run(case).outcome()
