"""What pyrevm asks of a message before it runs, and what it charges for."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from fastevm.compat.pyrevm.environments import TxEnv, unsigned
from fastevm.evm import EVM as Machine
from fastevm.evm import ExecutionResult as Outcome
from fastevm.spec.eips import Eip
from fastevm.spec.forks import BPO2, fork_named
from fastevm.spec.schedule import schedule_for

LATEST = "LATEST"


def refused(what: str) -> RuntimeError:
    return RuntimeError(f"Transaction({what})")


def too_little(gas: int, before: int) -> RuntimeError:
    return RuntimeError(
        f"Initial gas spend is {before} but gas limit is {gas}. "
        "Error: Transaction(CallGasCostMoreThanGasLimit)"
    )


class Rules:
    """The rules of a fork, ``limit`` on the size of code in place of its own."""

    def __init__(self, name: str, limit: int | None) -> None:
        fork = BPO2 if name.upper() == LATEST else fork_named(name)
        self.shown_name = "Latest" if name.upper() == LATEST else fork.name
        if limit is not None:
            sizes = {"max_code_size": limit}
            if schedule_for(fork).parameters["max_initcode_size"]:
                sizes["max_initcode_size"] = 2 * limit
            fork = fork.then(fork.name, Eip(170, "Contract code size limit", parameters=sizes))
        self.schedule = schedule_for(fork)
        found = self.schedule.parameters
        self.base = int(found["tx_cost"])
        self.has_access_lists = bool(found["has_access_lists"])
        self.list_address = int(found["tx_access_address_cost"])
        self.list_slot = int(found["tx_access_slot_cost"])
        self.creation = found["tx_create_cost"]
        self.word = found["create_word_cost"]
        self.zero = found["tx_zero_byte_cost"]
        self.nonzero = found["tx_nonzero_byte_cost"]
        self.max_initcode = found["max_initcode_size"]
        self.refund_quotient = found["refund_quotient"]
        self.blob_gas = found["blob_gas_per_blob"]

    def admit(
        self, evm: Machine, env: TxEnv, tx: dict[str, Any], sender: bytes, block_gas: int
    ) -> int:
        """The gas that goes before the message. RuntimeError for one that may not run."""
        gas, price, value = tx["gas_limit"], tx["gas_price"], tx["value"]
        if (gas | price | value) >> 64:
            unsigned(gas, 64), unsigned(price), unsigned(value)
        self.check_terms(evm, env, tx, block_gas)
        before = self.intrinsic_gas(tx["data"], tx["to"] is None)
        for _, slots in env.access_list or ():
            before += self.list_address + self.list_slot * len(slots)
        if gas < before:
            raise too_little(gas, before)
        self.check_sender(evm, env, sender, gas * price + value)
        return before

    def admit_bare(self, evm: Machine, sent: tuple[Any, ...], sender: bytes, block_gas: int) -> int:
        """The same for a call whose ``TxEnv`` says nothing."""
        _, _, data, value, gas, price = sent
        if (gas | price | value) >> 64:
            unsigned(gas, 64), unsigned(price), unsigned(value)
        if gas > block_gas:
            raise refused("CallerGasLimitMoreThanBlock")
        before = self.intrinsic_gas(data, False) if data else self.base
        if gas < before:
            raise too_little(gas, before)
        if evm.code(sender):
            raise refused("RejectCallerWithCode")
        cost = gas * price + value
        if cost:
            balance = evm.balance(sender)
            if cost > balance:
                raise refused(f"LackOfFundForMaxFee {{ fee: {cost}, balance: {balance} }}")
        return before

    def check_terms(self, evm: Machine, env: TxEnv, tx: dict[str, Any], block_gas: int) -> None:
        """Limits that do not depend on the state."""
        if tx["gas_limit"] > block_gas:
            raise refused("CallerGasLimitMoreThanBlock")
        if tx["to"] is None and 0 < self.max_initcode < len(tx["data"]):
            raise refused("CreateInitCodeSizeLimit")
        if env.chain_id is not None and env.chain_id != evm.chain_id:
            raise refused("InvalidChainId")
        if (env.gas_priority_fee or 0) > tx["gas_price"]:
            raise refused("PriorityFeeGreaterThanMaxFee")
        offered = env.max_fee_per_blob_gas
        if offered is not None and offered < evm.block.blob_base_fee:
            raise refused("BlobGasPriceGreaterThanMax")

    def check_sender(self, evm: Machine, env: TxEnv, sender: bytes, cost: int) -> None:
        """What the sender must be and have."""
        if evm.code(sender):
            raise refused("RejectCallerWithCode")
        if env.nonce is not None and env.nonce != evm.nonce(sender):
            kind = "High" if env.nonce > evm.nonce(sender) else "Low"
            state = evm.nonce(sender)
            raise refused(f"NonceToo{kind} {{ tx: {env.nonce}, state: {state} }}")
        cost += (env.max_fee_per_blob_gas or 0) * self.blob_gas * len(env.blob_hashes or ())
        if cost and cost > evm.balance(sender):
            raise refused(f"LackOfFundForMaxFee {{ fee: {cost}, balance: {evm.balance(sender)} }}")

    def intrinsic_gas(self, data: bytes, creates: bool) -> int:
        zeros = data.count(0)
        gas = self.base + zeros * self.zero + (len(data) - zeros) * self.nonzero
        if creates:
            gas += self.creation + (len(data) + 31) // 32 * self.word
        return int(gas)

    def refund(self, outcome: Outcome, spent: int) -> int:
        if not outcome.success:
            return 0
        return min(outcome.gas_refunded, spent // int(self.refund_quotient))


rules_of = lru_cache(maxsize=64)(Rules)
