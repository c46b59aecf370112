"""Runs blocks: system calls, transactions, withdrawals, requests, and the access list."""

from dataclasses import dataclass, field
from typing import Any

from ethereum.exceptions import InvalidBlock
from ethereum.forks.bpo2 import fork
from ethereum.forks.bpo2.fork_types import Address
from ethereum.forks.bpo2.state import TransientStorage, get_account, set_account_balance
from ethereum.forks.bpo2.vm import TransactionEnvironment
from ethereum_types.bytes import Bytes
from ethereum_types.numeric import U256, Uint

from .access import BALANCE, snapshot_of
from .frames import run_message
from .gas import Block, Call, Frame
from .numbers import ITEM_GAS, SYSTEM_GAS
from .reach import reach
from .transactions import Outcome, Sums, process_transaction

REQUESTS = (
    (fork.WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS, 1),
    (fork.CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS, 2),
)
BUILDER_REQUESTS = (
    (Address(bytes.fromhex("0000bff46984e3725691fa540a8c7589300d8282")), 3),
    (Address(bytes.fromhex("000064d678505ad48f8ccb093bc65613800e8282")), 4),
)
NAMES = {
    1: "withdrawal requests", 2: "consolidation requests", 3: "F builder deposits",
    4: "F builder exits",
}  # fmt: skip
GWEI = 10**9


@dataclass
class BlockRun:
    """A block during its execution. ``index``: the current index in the access list."""

    block: Block
    sums: Sums = field(default_factory=Sums)
    index: int = 0
    requests: list[bytes] = field(default_factory=list)

    def begin(self) -> None:
        """Makes the system calls before the first transaction."""
        self.block.recorder.before = snapshot_of(self.block.state)
        self.system_call(fork.BEACON_ROOTS_ADDRESS, self.block.parent_beacon_block_root)
        self.system_call(fork.HISTORY_STORAGE_ADDRESS, self.block.block_hashes[-1])
        self.close()

    def close(self) -> None:
        self.block.recorder.close(self.index, self.block.state)
        self.index += 1

    def add(self, tx: Any, sender: Address) -> Outcome:
        """Adds the next transaction. Raises InvalidBlock if it is invalid in the block."""
        outcome = process_transaction(self.block, self.sums, tx, sender)
        coinbase = bytes(self.block.coinbase)
        earns = coinbase in self.block.recorder.parts[BALANCE]
        reach("access lists: coinbase earns nothing", not earns)
        self.close()
        return outcome

    def end(self, withdrawals: list[tuple[Address, int]]) -> None:
        """Applies withdrawals and requests.

        Raises InvalidBlock if a system call fails, or if the access list has too many items.
        """
        state = self.block.state
        for address, amount in withdrawals:
            self.block.recorder.touch(address)
            reach("blocks: withdrawal" if amount else "blocks: withdrawal of nothing")
            balance = get_account(state, address).balance
            set_account_balance(state, address, balance + U256(amount * GWEI))
        builders = BUILDER_REQUESTS if self.block.numbers.frozen else ()
        for address, kind in REQUESTS + builders:
            frame = self.system_call(address, b"")
            if not frame.code or frame.error:
                reach("blocks: system contract fails")
                raise InvalidBlock(f"the system contract {address.hex()} failed")
            if frame.output:
                reach(f"blocks: {NAMES[kind]}")
                self.requests.append(bytes([kind]) + frame.output)
        self.close()
        self.block.recorder.note()
        reach("blocks: more state gas than gas", self.sums.state > self.sums.regular)
        reach("blocks: more gas than state gas", self.sums.state < self.sums.regular)
        if self.block.recorder.items > int(self.block.block_gas_limit) // ITEM_GAS:
            reach("blocks: access list too long")
            raise InvalidBlock("the access list is too long")

    def system_call(self, address: Address, data: bytes) -> Frame:
        """Calls a system contract."""
        block = self.block
        block.recorder.touch(address)
        environment = TransactionEnvironment(
            origin=fork.SYSTEM_ADDRESS, gas_price=block.base_fee_per_gas, gas=Uint(SYSTEM_GAS),
            access_list_addresses=set(), access_list_storage_keys=set(),
            transient_storage=TransientStorage(), blob_versioned_hashes=(), authorizations=(),
            index_in_block=None, tx_hash=None,
        )  # fmt: skip
        return run_message(
            Call(
                block_env=block, tx_env=environment, caller=fork.SYSTEM_ADDRESS, target=address,
                current_target=address, gas=Uint(SYSTEM_GAS), value=U256(0), data=Bytes(data),
                code_address=address, code=get_account(block.state, address).code, depth=Uint(0),
                should_transfer_value=False, is_static=False, accessed_addresses=set(),
                accessed_storage_keys=set(), disable_precompiles=False, parent_evm=None,
                reservoir=block.numbers.system_reservoir,
            )
        )  # fmt: skip
