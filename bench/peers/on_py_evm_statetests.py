"""Runs official state tests on py-evm and returns roots and times."""

import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from importlib.metadata import version as installed
from typing import Any

from eth.db.atomic import AtomicDB
from eth.vm import forks
from eth.vm.execution_context import ExecutionContext
from eth_hash.auto import keccak
from eth_keys import keys
from eth_utils import ValidationError
from protocol import data
from trie.constants import BLANK_NODE_HASH

MACHINES = {
    "Frontier": forks.FrontierVM,
    "Homestead": forks.HomesteadVM,
    "EIP150": forks.TangerineWhistleVM,
    "EIP158": forks.SpuriousDragonVM,
    "Byzantium": forks.ByzantiumVM,
    "Constantinople": forks.ConstantinopleVM,
    "ConstantinopleFix": forks.PetersburgVM,
    "Istanbul": forks.IstanbulVM,
    "Berlin": forks.BerlinVM,
    "London": forks.LondonVM,
    "Merge": forks.ParisVM,
    "Paris": forks.ParisVM,
    "Shanghai": forks.ShanghaiVM,
    "Cancun": forks.CancunVM,
    "Prague": forks.PragueVM,
}
ANCESTORS = 256
DEEP = 1_000_000
STACK_BYTES = 512 << 20


class TooSlow(BaseException):
    """A case exceeded its time limit. Not an Exception, so that no handler of py-evm catches it."""


def version() -> str:
    """Returns the version of the package."""
    return installed("py-evm")


def make_room() -> None:
    """Restarts with a larger stack, as each of 1024 nested calls needs several Python frames."""
    sys.setrecursionlimit(DEEP)
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    if soft != resource.RLIM_INFINITY and soft < STACK_BYTES:
        resource.setrlimit(resource.RLIMIT_STACK, (STACK_BYTES, hard))
        os.execv(sys.executable, [sys.executable, *sys.argv])


def number(text: "str | None") -> int:
    """Parses a number of a test file."""
    return int((text or "0x0").removeprefix("0x") or "0", 16)


def context_of(env: "dict[str, Any]", chain_id: int) -> ExecutionContext:
    """Returns the block of the transaction."""
    block = number(env["currentNumber"])
    first = max(0, block - ANCESTORS)
    return ExecutionContext(
        coinbase=data(env["currentCoinbase"]),
        timestamp=number(env["currentTimestamp"]),
        block_number=block,
        difficulty=number(env.get("currentDifficulty")),
        mix_hash=number(env.get("currentRandom")).to_bytes(32, "big"),
        gas_limit=number(env["currentGasLimit"]),
        prev_hashes=[keccak(str(n).encode()) for n in range(block - 1, first - 1, -1)],
        chain_id=chain_id,
        base_fee_per_gas=number(env.get("currentBaseFee")),
        excess_blob_gas=number(env.get("currentExcessBlobGas")),
    )


def state_of(machine: Any, test: "dict[str, Any]") -> Any:
    """Returns the pre-state in its block."""
    chain_id = number((test.get("config") or {}).get("chainid", "0x1"))
    context = context_of(test["env"], chain_id)
    state = machine.get_state_class()(AtomicDB(), context, BLANK_NODE_HASH)
    for shown, account in test["pre"].items():
        address = data(shown)
        state.set_nonce(address, number(account["nonce"]))
        state.set_balance(address, number(account["balance"]))
        state.set_code(address, data(account["code"]))
        for slot, word in account["storage"].items():
            state.set_storage(address, number(slot), number(word))
    state.persist()
    return state


def transaction_of(machine: Any, test: "dict[str, Any]", entry: "dict[str, Any]") -> Any:
    """Returns the signed transaction, or signs its fields with the key in the file."""
    builder = machine.get_transaction_builder()
    if "txbytes" in entry:
        return builder.decode(data(entry["txbytes"]))
    fields, indexes = test["transaction"], entry["indexes"]
    unsigned = builder.create_unsigned_transaction(
        nonce=number(fields["nonce"]),
        gas_price=number(fields["gasPrice"]),
        gas=number(fields["gasLimit"][indexes["gas"]]),
        to=data(fields["to"]),
        value=number(fields["value"][indexes["value"]]),
        data=data(fields["data"][indexes["data"]]),
    )
    return unsigned.as_signed_transaction(keys.PrivateKey(data(fields["secretKey"])))


def root_after(machine: Any, state: Any, test: "dict[str, Any]", entry: "dict[str, Any]") -> bytes:
    """Returns the root after the transaction. A rejected transaction only touches the coinbase."""
    try:
        transaction = transaction_of(machine, test, entry)
        state.lock_changes()
        state.apply_transaction(transaction)
    except ValidationError:
        pass
    coinbase = data(test["env"]["currentCoinbase"])
    state.delta_balance(coinbase, 0)
    if issubclass(machine, forks.SpuriousDragonVM) and state.account_is_empty(coinbase):
        state.delete_account(coinbase)
    state.persist()
    root: bytes = state.state_root
    return root


def run_case(test: "dict[str, Any]", fork: str, position: int) -> "tuple[str, float, float]":
    """Returns the failure or "", the seconds to make the state, and the seconds after that."""
    if fork not in MACHINES:
        return "of a fork that it does not have", 0.0, 0.0
    machine, entry = MACHINES[fork], test["post"][fork][position]
    started = time.thread_time()
    state = state_of(machine, test)
    made = time.thread_time()
    root = root_after(machine, state, test, entry)
    done = time.thread_time()
    wrong = "" if root == data(entry["hash"]) else "with another root"
    return wrong, made - started, done - made


def give_up(*_: object) -> None:
    raise TooSlow


def guarded(
    run: "Callable[[], tuple[str, float, float]]", limit: float
) -> "tuple[str, float, float]":
    """Runs a case and stops it after ``limit`` CPU seconds."""
    signal.setitimer(signal.ITIMER_PROF, limit)
    try:
        return run()
    except TooSlow:
        return f"over {limit:g} s", 0.0, 0.0
    except Exception as error:
        return f"that fail with {type(error).__name__}", 0.0, 0.0
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def answer(request: "dict[str, Any]") -> "dict[str, Any]":
    """Handles a request: ``hello``, or ``run`` for cases of one file."""
    if request["do"] == "hello":
        return {"version": version()}
    started = time.thread_time()
    tests = json.loads(request["content"])
    reading = time.thread_time() - started
    found = [
        guarded(lambda t=title, f=fork, p=position: run_case(tests[t], f, p), request["limit"])
        for title, fork, position in request["cases"]
    ]
    return {"reading": reading, "cases": found}


make_room()
signal.signal(signal.SIGPROF, give_up)
