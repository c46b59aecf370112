"""Runs cases on pyrevm: a message call, then a revert to the snapshot before it."""

from importlib.metadata import version as installed
from typing import Any

import pyrevm
from protocol import call_of, data, number, outcome, storage

CALL_INTRINSIC_GAS = 21_000
DATA_GAS = (4, 16)  # gas of a zero byte and of another byte


def version() -> str:
    """Returns the version of the wheel."""
    return installed("pyrevm")


def environment(env: "dict[str, Any]") -> pyrevm.EVM:
    """Returns an empty machine in the block of the case file."""
    block = pyrevm.BlockEnv(
        number=env.get("number", 1),
        timestamp=env.get("timestamp", 1),
        gas_limit=env.get("gas_limit", 30_000_000),
        basefee=env.get("base_fee", 0),
    )
    settings = pyrevm.CfgEnv(chain_id=env.get("chain_id", 1))
    fork = env.get("fork", "cancun").upper()
    return pyrevm.EVM(pyrevm.Env(settings, block), gas_limit=2**64 - 1, spec_id=fork)


class Program:
    """A prepared case.

    pyrevm's gas includes intrinsic gas and subtracts refunds; both are undone. Slots set by
    insert_account_storage are warm from the start, which ``outcome`` reports.
    """

    def __init__(self, env: "dict[str, Any]", case: "dict[str, Any]", slow: bool) -> None:
        self.evm = environment(env)
        self.warm_slots = False
        for address, account in case["pre"].items():
            code = data(account.get("code")) or None
            nonce = number(account.get("nonce"))
            self.evm.insert_account_info(address, pyrevm.AccountInfo(nonce=nonce, code=code))
            if number(account.get("balance")):
                self.evm.set_balance(address, number(account["balance"]))
            for slot, value in storage(account).items():
                self.evm.insert_account_storage(address, slot, value)
                self.warm_slots = True
        payload, gas = call_of(case, slow)
        self.intrinsic = CALL_INTRINSIC_GAS + sum(DATA_GAS[byte != 0] for byte in payload)
        self.arguments = (case["caller"], case["to"], payload, 0, gas)

    def run(self) -> None:
        """Calls, then reverts the changes."""
        snapshot = self.evm.snapshot()
        self.evm.message_call(*self.arguments)
        self.evm.revert(snapshot)

    def outcome(self) -> "dict[str, Any]":
        """Runs once and returns the outcome."""
        snapshot = self.evm.snapshot()
        try:
            output = self.evm.message_call(*self.arguments)
        except RuntimeError:
            output = b""
        found = self.evm.result
        self.evm.revert(snapshot)
        gas = found.gas_used + found.gas_refunded - self.intrinsic
        return dict(outcome(gas, output, found.is_success), warm_slots=self.warm_slots)


def prepare(env: "dict[str, Any]", case: "dict[str, Any]", slow: bool) -> Program:
    """Returns a case ready to run."""
    return Program(env, case, slow)
