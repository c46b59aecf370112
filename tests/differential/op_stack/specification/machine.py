"""Runs messages of a block on the executable specification (EELS), under OP-stack rules.

Of the OP stack this module knows only the table of precompiles, and that blob gas costs one wei
(ecotone/exec-engine). `transition` has all other rules.
"""

from dataclasses import dataclass, fields, is_dataclass
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from ethereum_rlp import rlp
from ethereum_types.bytes import Bytes, Bytes0, Bytes32
from ethereum_types.numeric import U64, U256, Uint

from .constants import SYSTEM_ADDRESS, SYSTEM_GAS
from .forks import Fork
from .precompiles import Precompiles
from .receipts import Log

LEGACY_FIRST_BYTE = 0xC0


@dataclass(frozen=True)
class Environment:
    """The block values that opcodes read. Hashes of ancestors are ordered from oldest to newest."""

    chain_id: int
    number: int
    timestamp: int
    gas_limit: int
    base_fee: int
    coinbase: bytes
    prev_randao: bytes
    block_hashes: tuple[bytes, ...]
    parent_beacon_block_root: bytes


@dataclass(frozen=True)
class Message:
    """The outermost message call of a transaction. With an empty `to` it creates a contract."""

    sender: bytes
    to: bytes
    value: int
    data: bytes
    gas: int
    gas_price: int
    warm: frozenset[bytes] = frozenset()
    warm_slots: frozenset[tuple[bytes, bytes]] = frozenset()
    authorizations: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """The outcome of a message, before the refund is subtracted from the used gas."""

    error: str | None
    gas_left: int
    refund_counter: int
    logs: tuple[Log, ...]
    destroyed: tuple[Any, ...]


class Machine:
    """The state during a block, in the types of the executable specification."""

    def __init__(self, fork: Fork, environment: Environment) -> None:
        self.fork = fork
        package = f"ethereum.forks.{fork.evm}"
        self.vm = import_module(f"{package}.vm")
        self.states = import_module(f"{package}.state")
        self.types = import_module(f"{package}.fork_types")
        self.transactions = import_module(f"{package}.transactions")
        self.interpreter = import_module(f"{package}.vm.interpreter")
        self.message_of = import_module(f"{package}.utils.message").prepare_message
        self.state = self.states.State()
        self.environment = environment
        self.block = self.block_environment(environment)
        Precompiles(fork).install()

    def block_environment(self, environment: Environment) -> Any:
        return made(
            self.vm.BlockEnvironment,
            chain_id=U64(environment.chain_id),
            state=self.state,
            block_gas_limit=Uint(environment.gas_limit),
            block_hashes=[Bytes32(item) for item in environment.block_hashes],
            coinbase=self.address(environment.coinbase),
            number=Uint(environment.number),
            base_fee_per_gas=Uint(environment.base_fee),
            time=U256(environment.timestamp),
            prev_randao=Bytes32(environment.prev_randao),
            excess_blob_gas=U64(0),
            parent_beacon_block_root=Bytes32(environment.parent_beacon_block_root),
        )

    def address(self, address: bytes) -> Any:
        return self.types.Address(address)

    # --- the state ---

    def put(self, address: bytes, nonce: int, balance: int, code: bytes) -> None:
        """Sets an account without changing its storage."""
        account = self.types.Account(nonce=Uint(nonce), balance=U256(balance), code=Bytes(code))
        self.states.set_account(self.state, self.address(address), account)

    def put_slot(self, address: bytes, slot: bytes, value: int) -> None:
        self.states.set_storage(self.state, self.address(address), Bytes32(slot), U256(value))

    def slot(self, address: bytes, slot: bytes) -> int:
        return int(self.states.get_storage(self.state, self.address(address), Bytes32(slot)))

    def nonce(self, address: bytes) -> int:
        return int(self.states.get_account(self.state, self.address(address)).nonce)

    def balance(self, address: bytes) -> int:
        return int(self.states.get_account(self.state, self.address(address)).balance)

    def code(self, address: bytes) -> bytes:
        return bytes(self.states.get_account(self.state, self.address(address)).code)

    def set_code(self, address: bytes, code: bytes) -> None:
        self.states.set_code(self.state, self.address(address), Bytes(code))

    def increment_nonce(self, address: bytes) -> None:
        self.states.increment_nonce(self.state, self.address(address))

    def add_balance(self, address: bytes, amount: int) -> None:
        """Adds to a balance. If the account is empty afterwards, it is deleted (EIP-161)."""
        balance = U256(self.balance(address) + amount)
        self.states.set_account_balance(self.state, self.address(address), balance)

    def destroy(self, addresses: tuple[Any, ...]) -> None:
        for address in addresses:
            self.states.destroy_account(self.state, address)

    def state_root(self) -> bytes:
        return bytes(self.states.state_root(self.state))

    def storage_root(self, address: bytes) -> bytes:
        return bytes(self.states.storage_root(self.state, self.address(address)))

    def accounts(self) -> dict[bytes, tuple[int, int, bytes, dict[bytes, int]]]:
        """Returns nonce, balance, code and storage of every account."""
        found = {}
        for address, account in self.state._main_trie._data.items():
            trie = self.state._storage_tries.get(address)
            slots = {} if trie is None else trie._data
            storage = {bytes(slot): int(value) for slot, value in slots.items()}
            parts = (int(account.nonce), int(account.balance), bytes(account.code), storage)
            found[bytes(address)] = parts
        return found

    # --- transactions ---

    def decode(self, raw: bytes) -> Any:
        """Decodes a signed transaction.

        Raises an exception of the specification if it is malformed.
        """
        if raw[0] >= LEGACY_FIRST_BYTE:
            return rlp.decode_to(self.transactions.LegacyTransaction, raw)
        return self.transactions.decode_transaction(Bytes(raw))

    def as_transaction(self, gas: int, to: bytes, value: int, data: bytes) -> Any:
        """Returns a transaction without access list, to compute its intrinsic gas."""
        return self.transactions.FeeMarketTransaction(
            chain_id=U64(0), nonce=U256(0), max_priority_fee_per_gas=Uint(0),
            max_fee_per_gas=Uint(0), gas=Uint(gas), to=self.target(to), value=U256(value),
            data=Bytes(data), access_list=(), y_parity=U256(0), r=U256(0), s=U256(0),
        )  # fmt: skip

    def target(self, to: bytes) -> Any:
        return self.address(to) if to else Bytes0(b"")

    def floor_and_intrinsic(self, transaction: Any) -> tuple[int, int]:
        """Returns the calldata floor (EIP-7623; 0 in earlier forks), and the intrinsic gas."""
        costs = self.transactions.calculate_intrinsic_cost(transaction)
        if isinstance(costs, tuple):
            intrinsic, floor = costs
            return int(floor), int(intrinsic)
        return 0, int(costs)

    def sender_of(self, transaction: Any) -> bytes:
        chain_id = U64(self.environment.chain_id)
        return bytes(self.transactions.recover_sender(chain_id, transaction))

    # --- messages ---

    def run(self, message: Message) -> Outcome:
        """Runs the outermost message of a transaction. The caller has incremented the nonce."""
        environment = self.transaction_environment(message)
        wanted = SimpleNamespace(
            to=self.target(message.to), value=U256(message.value), data=Bytes(message.data)
        )
        prepared = self.message_of(self.block, environment, wanted)
        return self.outcome(self.interpreter.process_message_call(prepared))

    def transaction_environment(self, message: Message) -> Any:
        slots = {(self.address(address), Bytes32(slot)) for address, slot in message.warm_slots}
        storage = getattr(self.states, "TransientStorage", SimpleNamespace)
        return made(
            self.vm.TransactionEnvironment,
            origin=self.address(message.sender),
            gas_price=Uint(message.gas_price),
            gas=Uint(message.gas),
            access_list_addresses={self.address(item) for item in message.warm},
            access_list_storage_keys=slots,
            transient_storage=storage(),
            blob_versioned_hashes=(),
            authorizations=message.authorizations,
            index_in_block=Uint(0),
            tx_hash=None,
        )

    def system_call(self, address: bytes, data: bytes) -> None:
        """Makes a system call (EIP-4788, EIP-2935), which pays no fee.

        Does nothing if there is no code.
        """
        code = self.code(address)
        if not code:
            return
        target = self.address(address)
        sender = Message(SYSTEM_ADDRESS, address, 0, data, SYSTEM_GAS, 0)
        self.interpreter.process_message_call(
            made(
                self.vm.Message,
                block_env=self.block,
                tx_env=self.transaction_environment(sender),
                caller=self.address(SYSTEM_ADDRESS),
                target=target,
                gas=Uint(SYSTEM_GAS),
                value=U256(0),
                data=Bytes(data),
                code=Bytes(code),
                depth=Uint(0),
                current_target=target,
                code_address=target,
                should_transfer_value=False,
                is_static=False,
                accessed_addresses=set(),
                accessed_storage_keys=set(),
                disable_precompiles=False,
                parent_evm=None,
            )
        )

    def outcome(self, output: Any) -> Outcome:
        logs = tuple(
            Log(bytes(log.address), tuple(bytes(topic) for topic in log.topics), bytes(log.data))
            for log in output.logs
        )
        return Outcome(
            error=None if output.error is None else type(output.error).__name__,
            gas_left=int(output.gas_left),
            refund_counter=int(output.refund_counter),
            logs=logs,
            destroyed=tuple(output.accounts_to_delete),
        )


def made(kind: Any, **known: Any) -> Any:
    """Creates a dataclass of a fork. Ignores values for fields that the fork's dataclass lacks."""
    assert is_dataclass(kind)
    return kind(**{field.name: known[field.name] for field in fields(kind)})
