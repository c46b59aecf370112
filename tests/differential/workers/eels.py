"""Runs cases on the executable specification (ethereum-execution), in a separate environment."""

from dataclasses import fields as fields_of
from functools import cache
from importlib import import_module
from importlib.metadata import version
from types import ModuleType, SimpleNamespace
from typing import Any

from ethereum.crypto.hash import keccak256
from ethereum.exceptions import EthereumException
from ethereum.trace import EvmStop, GasAndRefund, OpStart, discard_evm_trace, set_evm_trace
from ethereum_types.bytes import Bytes, Bytes0, Bytes32
from ethereum_types.numeric import U8, U64, U256, Uint
from pipe import hexed, serve, unhexed

# The specification's module "constantinople" has mainnet's rules, which are those of Petersburg.
MODULES = {
    "Frontier": "frontier",
    "Homestead": "homestead",
    "TangerineWhistle": "tangerine_whistle",
    "SpuriousDragon": "spurious_dragon",
    "Byzantium": "byzantium",
    "Petersburg": "constantinople",
    "Istanbul": "istanbul",
    "Berlin": "berlin",
    "London": "london",
    "Paris": "paris",
    "Shanghai": "shanghai",
    "Cancun": "cancun",
    "Prague": "prague",
    "Osaka": "osaka",
    "BPO1": "bpo1",
    "BPO2": "bpo2",
}
ANCESTORS = 256
UNSIGNED = {"r": U256(0), "s": U256(0)}


class Rules:
    """The modules of one fork."""

    def __init__(self, name: str) -> None:
        package = f"ethereum.forks.{name}"
        self.fork = import_module(f"{package}.fork")
        self.vm = import_module(f"{package}.vm")
        self.state = import_module(f"{package}.state")
        self.types = import_module(f"{package}.fork_types")
        self.transactions = import_module(f"{package}.transactions")
        self.exceptions = import_module(f"{package}.vm.exceptions")
        interpreter = import_module(f"{package}.vm.interpreter")
        self.sender: Any = None
        self.seen = SimpleNamespace(error=None, output=b"")
        self.fork.recover_sender = lambda *_: self.sender
        self.watch(interpreter)

    def watch(self, interpreter: ModuleType) -> None:
        """Wraps the interpreter to keep error and output of the outermost frame.

        Receipts have neither.
        """
        inner, message_call = interpreter.process_message, interpreter.process_message_call
        creation = interpreter.process_create_message

        def process_message(message: Any, *rest: Any) -> Any:
            evm = inner(message, *rest)
            if message.depth == 0:
                self.seen = evm
            return evm

        def process_message_call(message: Any, *rest: Any) -> Any:
            self.seen = SimpleNamespace(error=None, output=b"")
            output = message_call(message, *rest)
            self.seen = SimpleNamespace(error=output.error, output=self.seen.output)
            return output

        interpreter.process_message = process_message
        interpreter.process_create_message = creation
        self.fork.process_message_call = process_message_call


@cache
def rules_of(fork: str) -> Rules:
    return Rules(MODULES[fork])


def state_of(rules: Rules, pre: dict[str, Any]) -> Any:
    state = rules.state.State()
    for key, account in pre.items():
        address = rules.types.Address(unhexed(key))
        value = rules.types.Account(
            nonce=Uint(account["nonce"]),
            balance=U256(account["balance"]),
            code=Bytes(unhexed(account["code"])),
        )
        rules.state.set_account(state, address, value)
        for slot, word in account["storage"].items():
            rules.state.set_storage(state, address, U256(int(slot, 16)).to_be_bytes32(), U256(word))
    return state


def environment_of(rules: Rules, block: dict[str, Any], state: Any) -> Any:
    number = block["number"]
    first = max(0, number - ANCESTORS)
    known = {
        "chain_id": U64(block["chain_id"]),
        "state": state,
        "block_gas_limit": Uint(block["gas_limit"]),
        "block_hashes": [keccak256(str(n).encode()) for n in range(first, number)],
        "coinbase": rules.types.Address(unhexed(block["coinbase"])),
        "number": Uint(number),
        "base_fee_per_gas": Uint(block["base_fee"]),
        "time": U256(block["timestamp"]),
        "difficulty": Uint(block["difficulty"]),
        "prev_randao": U256(block["prev_randao"]).to_be_bytes32(),
        "excess_blob_gas": U64(block["excess_blob_gas"]),
        "parent_beacon_block_root": Bytes32(bytes(32)),
    }
    kind = rules.vm.BlockEnvironment
    return kind(**{field.name: known[field.name] for field in fields_of(kind)})


def transaction_of(rules: Rules, fields: dict[str, Any]) -> Any:
    """Returns the transaction. Nothing checks its signature."""
    types = rules.transactions
    to = Bytes0(b"") if fields["to"] is None else rules.types.Address(unhexed(fields["to"]))
    known: dict[str, Any] = {
        "nonce": U256(fields["nonce"]),
        "gas": Uint(fields["gas_limit"]),
        "to": to,
        "value": U256(fields["value"]),
        "data": Bytes(unhexed(fields["data"])),
        **UNSIGNED,
    }
    kind = fields["type"]
    if kind < 2:
        known["gas_price"] = Uint(fields["gas_price"])
    else:
        known["max_fee_per_gas"] = Uint(fields["max_fee_per_gas"])
        known["max_priority_fee_per_gas"] = Uint(fields["max_priority_fee_per_gas"])
    if kind == 0:
        return (types.LegacyTransaction if hasattr(types, "LegacyTransaction")
                else types.Transaction)(v=U256(27), **known)  # fmt: skip
    known |= {"chain_id": U64(1), "y_parity": U256(0)}
    known["access_list"] = access_list_of(rules, fields["access_list"])
    if kind == 1:
        return types.AccessListTransaction(**known)
    if kind == 2:
        return types.FeeMarketTransaction(**known)
    if kind == 3:
        known["max_fee_per_blob_gas"] = U256(fields["max_fee_per_blob_gas"])
        known["blob_versioned_hashes"] = tuple(
            Bytes32(unhexed(item)) for item in fields["blob_versioned_hashes"]
        )
        return types.BlobTransaction(**known)
    known["nonce"] = U64(fields["nonce"])
    known["authorizations"] = tuple(
        rules.types.Authorization(
            U256(chain), rules.types.Address(unhexed(address)), U64(nonce), U8(y), U256(r), U256(s)
        )
        for chain, address, nonce, y, r, s in fields["authorization_list"]
    )
    return types.SetCodeTransaction(**known)


def access_list_of(rules: Rules, entries: list[Any]) -> tuple[Any, ...]:
    pairs = [
        (rules.types.Address(unhexed(a)), tuple(U256(key).to_be_bytes32() for key in keys))
        for a, keys in entries
    ]
    if hasattr(rules.transactions, "Access"):
        return tuple(rules.transactions.Access(account=a, slots=keys) for a, keys in pairs)
    return tuple(pairs)


def run_transaction(rules: Rules, environment: Any, fields: dict[str, Any]) -> dict[str, Any]:
    """Runs a transaction on the environment's state, as the only transaction of a block."""
    output = rules.vm.BlockOutput()
    rules.sender = rules.types.Address(unhexed(fields["sender"]))
    try:
        transaction = transaction_of(rules, fields)
        rules.fork.process_transaction(environment, output, transaction, Uint(0))
    except EthereumException as refusal:
        return {"status": "rejected", "reason": repr(refusal)}
    error = rules.seen.error
    status = "success" if error is None else "halt"
    if type(error).__name__ == "Revert":
        status = "revert"
    return {
        "status": status,
        "reason": "" if error is None else repr(error),
        "gas_used": int(output.block_gas_used),
        # Before Byzantium, a frame keeps the output of a failed creation. It is no output of the
        # transaction.
        "output": "0x" if status == "halt" else hexed(rules.seen.output),
        "logs": [
            [hexed(log.address), [hexed(topic) for topic in log.topics], hexed(log.data)]
            for log in output.block_logs
        ],
    }


class Steps:
    """Records every step: pc, opcode, gas left, stack items, memory bytes, depth, gas cost."""

    def __init__(self) -> None:
        self.taken: list[list[int]] = []
        self.is_charged = True

    def __call__(self, evm: Any, event: object, *_: object) -> None:
        if isinstance(event, OpStart):
            self.take(evm, event.op.value)
        elif isinstance(event, GasAndRefund) and not self.is_charged:
            # An opcode charges once. A later charge before the next opcode pays for the code of a
            # creation.
            self.taken[-1][-1] = int(event.gas_cost)
            self.is_charged = True
        elif isinstance(event, EvmStop) and evm.running and evm.code:
            # Code that ends without a STOP still executes one.
            self.take(evm, 0)

    def take(self, evm: Any, op: int) -> None:
        depth = int(evm.message.depth) + 1
        step = [int(evm.pc), op, int(evm.gas_left), len(evm.stack), len(evm.memory), depth, 0]
        self.taken.append(step)
        self.is_charged = False


def dump(state: Any) -> dict[str, Any]:
    """Returns all accounts: address -> [nonce, balance, code, {slot: value}]."""
    dumped = {}
    for address, account in sorted(state._main_trie._data.items()):
        trie = state._storage_tries.get(address)
        slots = {} if trie is None else trie._data
        storage = {
            hex(int.from_bytes(key, "big")): int(value) for key, value in sorted(slots.items())
        }
        dumped[hexed(address)] = [
            int(account.nonce), int(account.balance), hexed(account.code), storage,
        ]  # fmt: skip
    return dumped


def run(case: dict[str, Any]) -> dict[str, Any]:
    if case["fork"] not in MODULES:
        return {"unsupported": case["fork"]}
    rules = rules_of(case["fork"])
    state = state_of(rules, case["pre"])
    environment = environment_of(rules, case["block"], state)
    steps = Steps()
    set_evm_trace(steps if case.get("trace") else discard_evm_trace)
    try:
        outcomes = [run_transaction(rules, environment, tx) for tx in case["transactions"]]
    except OverflowError:
        # Lengths near 2**256 overflow in the specification's MODEXP, because it charges gas too
        # late.
        return {"unsupported": "a number beyond 2**256"}
    root = hexed(rules.state.state_root(state))
    return {
        "transactions": outcomes,
        "state": dump(state),
        "root": root,
        "steps": steps.taken,
    }


if __name__ == "__main__":
    serve(run, "ethereum-execution " + version("ethereum-execution"))
