"""Runs cases on py-evm: applies a message to a state, then reverts to the snapshot before it."""

from importlib.metadata import version as installed
from typing import Any

from eth.db.atomic import AtomicDB
from eth.vm.execution_context import ExecutionContext
from eth.vm.forks import CancunVM, PragueVM, ShanghaiVM
from eth.vm.message import Message
from protocol import call_of, data, number, outcome, storage

MACHINES = {"shanghai": ShanghaiVM, "cancun": CancunVM, "prague": PragueVM}
EMPTY_TRIE_ROOT = bytes.fromhex("56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421")


def version() -> str:
    """Returns the version of the package."""
    return installed("py-evm")


def state_of(env: "dict[str, Any]") -> Any:
    """Returns an empty state in the block of the case file."""
    machine = MACHINES[env.get("fork", "cancun")]
    context = ExecutionContext(
        coinbase=bytes(20),
        timestamp=env.get("timestamp", 1),
        block_number=env.get("number", 1),
        difficulty=0,
        mix_hash=bytes(32),
        gas_limit=env.get("gas_limit", 30_000_000),
        prev_hashes=(),
        chain_id=env.get("chain_id", 1),
        base_fee_per_gas=env.get("base_fee", 0),
        excess_blob_gas=0,
    )
    return machine.get_state_class()(AtomicDB(), context, EMPTY_TRIE_ROOT)


class Program:
    """A prepared case. Caller, recipient and coinbase are made warm before every run."""

    def __init__(self, env: "dict[str, Any]", case: "dict[str, Any]", slow: bool) -> None:
        self.state = state_of(env)
        for shown, account in case["pre"].items():
            address = data(shown)
            self.state.set_balance(address, number(account.get("balance")))
            self.state.set_nonce(address, number(account.get("nonce")))
            self.state.set_code(address, data(account.get("code")))
            for slot, value in storage(account).items():
                self.state.set_storage(address, slot, value)
        self.state.lock_changes()  # values set so far become the original values
        self.caller, self.to = data(case["caller"]), data(case["to"])
        self.payload, self.gas = call_of(case, slow)
        self.code = self.state.get_code(self.to)

    def apply(self) -> Any:
        """Applies the message and reverts its changes."""
        state = self.state
        snapshot = state.snapshot()
        for address in (self.caller, self.to, bytes(20)):
            state.mark_address_warm(address)
        message = Message(self.gas, self.to, self.caller, 0, self.payload, self.code)
        context = state.get_transaction_context_class()(gas_price=0, origin=self.caller)
        found = state.computation_class.apply_message(state, message, context)
        state.revert(snapshot)
        return found

    run = apply

    def outcome(self) -> "dict[str, Any]":
        """Runs once and returns the outcome."""
        found = self.apply()
        return outcome(self.gas - found.get_gas_remaining(), found.output, found.is_success)


def prepare(env: "dict[str, Any]", case: "dict[str, Any]", slow: bool) -> Program:
    """Returns a case ready to run."""
    return Program(env, case, slow)
