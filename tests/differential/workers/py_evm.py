"""Runs cases on py-evm, in a separate environment: signed transactions, up to Prague.

Works around a bug of py-evm: MODEXP with an empty base returns 0 even if the exponent is 0.
"""

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from typing import Any

from eth.db.atomic import AtomicDB
from eth.exceptions import Revert
from eth.vm import forks
from eth.vm.execution_context import ExecutionContext
from eth.vm.forks.byzantium import ByzantiumVM
from eth_hash.auto import keccak
from eth_utils import ValidationError
from pipe import hexed, serve, unhexed
from trie.constants import BLANK_NODE_HASH

MACHINES = {
    name: getattr(forks, f"{name}VM")
    for name in (
        "Frontier", "Homestead", "TangerineWhistle", "SpuriousDragon", "Byzantium",
        "Constantinople", "Petersburg", "Istanbul", "Berlin", "London", "Paris", "Shanghai",
        "Cancun", "Prague",
    )
}  # fmt: skip
ANCESTORS = 256
# `import ... as` would return the function that the package has under the same name.
modexp = import_module("eth.precompiles.modexp")


def power(data: bytes, theirs: Callable[[bytes], int] = modexp._modexp) -> int:
    """Computes base ** exponent % modulus for MODEXP with 0**0 = 1 (EIP-198), instead of py-evm."""
    base, exponent, modulus = modexp.extract_lengths(data)
    if base or not modulus:
        return theirs(data)
    power_of_zero = not any(data[96 : 96 + exponent])
    number = data[96 + exponent : 96 + exponent + modulus].ljust(modulus, b"\0")
    return int(power_of_zero and int.from_bytes(number, "big") > 1)


modexp._modexp = power


def context_of(block: dict[str, Any]) -> ExecutionContext:
    number = block["number"]
    first = max(0, number - ANCESTORS)
    return ExecutionContext(
        coinbase=unhexed(block["coinbase"]),
        timestamp=block["timestamp"],
        block_number=number,
        difficulty=block["difficulty"],
        mix_hash=block["prev_randao"].to_bytes(32, "big"),
        gas_limit=block["gas_limit"],
        prev_hashes=[keccak(str(n).encode()) for n in range(number - 1, first - 1, -1)],
        chain_id=block["chain_id"],
        base_fee_per_gas=block["base_fee"],
        excess_blob_gas=block["excess_blob_gas"],
    )


def state_of(machine: Any, case: dict[str, Any]) -> Any:
    context = context_of(case["block"])
    state = machine.get_state_class()(AtomicDB(), context, BLANK_NODE_HASH)
    for key, account in case["pre"].items():
        address = unhexed(key)
        state.set_nonce(address, account["nonce"])
        state.set_balance(address, account["balance"])
        state.set_code(address, unhexed(account["code"]))
        for slot, word in account["storage"].items():
            state.set_storage(address, int(slot, 16), word)
    state.persist()
    return state


def run_transaction(machine: Any, state: Any, fields: dict[str, Any]) -> dict[str, Any]:
    """Runs a transaction on the state, with a gas limit as in a block of its own."""
    try:
        transaction = machine.get_transaction_builder().decode(unhexed(fields["raw"]))
        state.lock_changes()
        computation = state.apply_transaction(transaction)
    except ValidationError as refusal:
        return {"status": "rejected", "reason": repr(refusal)}
    status = "success" if computation.is_success else "halt"
    if computation.is_error and isinstance(computation.error, Revert):
        status = "revert"
    gas_used = machine.finalize_gas_used(transaction, computation)
    # py-evm commits the state where its blocks create the receipt, which this function skips.
    state.persist() if issubclass(machine, ByzantiumVM) else state.make_state_root()
    return {
        "status": status,
        "reason": "" if computation.is_success else repr(computation.error),
        "gas_used": gas_used,
        "output": hexed(computation.output),
        "logs": [
            [hexed(address), [hexed(topic.to_bytes(32, "big")) for topic in topics], hexed(data)]
            for address, topics, data in computation.get_log_entries()
        ],
    }


def dump(state: Any, addresses: list[str]) -> dict[str, Any]:
    """Returns the accounts that exist, without storage, because py-evm cannot list storage."""
    dumped = {}
    for key in addresses:
        address = unhexed(key)
        if state.account_exists(address):
            dumped[key] = {
                "nonce": state.get_nonce(address),
                "balance": state.get_balance(address),
                "code": hexed(state.get_code(address)),
            }
    return dumped


def run(case: dict[str, Any]) -> dict[str, Any]:
    if case["fork"] not in MACHINES:
        return {"unsupported": case["fork"]}
    machine = MACHINES[case["fork"]]
    state = state_of(machine, case)
    outcomes = [run_transaction(machine, state, fields) for fields in case["transactions"]]
    state.persist()
    return {
        "transactions": outcomes,
        "accounts": dump(state, list(case["pre"])),
        "root": hexed(state.state_root),
    }


serve(run, "py-evm " + version("py-evm"))
