"""Runs transactions: upfront costs, authorizations, the first frame, refund and fees."""

from dataclasses import dataclass, field, replace
from typing import Any

from ethereum.exceptions import InvalidBlock, InvalidSignatureError
from ethereum.forks.bpo2 import fork
from ethereum.forks.bpo2.fork_types import Account, Address
from ethereum.forks.bpo2.state import (
    TransientStorage,
    account_exists,
    begin_transaction,
    commit_transaction,
    destroy_account,
    destroy_storage,
    get_account,
    increment_nonce,
    is_account_alive,
    rollback_transaction,
    set_account,
    set_account_balance,
    set_code,
)
from ethereum.forks.bpo2.utils.address import compute_contract_address
from ethereum.forks.bpo2.vm import BlockOutput, TransactionEnvironment
from ethereum.forks.bpo2.vm.eoa_delegation import EOA_DELEGATION_MARKER, recover_authority
from ethereum.forks.bpo2.vm.exceptions import AddressCollision, OutOfGasError
from ethereum.forks.bpo2.vm.gas import calculate_data_fee
from ethereum.forks.bpo2.vm.precompiled_contracts.mapping import PRE_COMPILED_CONTRACTS
from ethereum_types.bytes import Bytes, Bytes0
from ethereum_types.numeric import U64, U256, Uint

from .frames import burn_log, delegate_of, is_taken, run_creation, run_message
from .gas import Block, Call, Frame, Purse, charge, charge_state, refill, return_gas
from .numbers import (
    FLOOR_OF_BYTE,
    INIT_CODE_WORD,
    TRANSACTION_GAS_CAP,
    WARM,
)
from .reach import reach

NOBODY = Address(bytes(20))


@dataclass
class Sums:
    """The gas used by the transactions of a block so far."""

    regular: int = 0
    state: int = 0
    blob_gas: U64 = field(default_factory=lambda: U64(0))


@dataclass
class Outcome:
    """The outcome of a transaction. ``regular`` and ``state`` are the gas that the block counts."""

    error: Exception | None
    output: bytes
    paid: int
    refunded: int
    regular: int
    state: int
    logs: tuple[Any, ...]


@dataclass
class Costs:
    """The intrinsic gas of a transaction (regular and state gas), and its calldata floor."""

    regular: int
    state: int
    floor: int


def access_list_of(tx: Any) -> list[tuple[Address, tuple[Any, ...]]]:
    return [(entry.account, entry.slots) for entry in getattr(tx, "access_list", ())]


def authorizations_of(tx: Any) -> tuple[Any, ...]:
    return getattr(tx, "authorizations", ())


def costs_of(block: Block, tx: Any, sender: Address) -> Costs:
    """Computes the intrinsic regular and state gas of a transaction, and its calldata floor."""
    numbers, is_creation = block.numbers, tx.to == Bytes0(b"")
    entries = access_list_of(tx)
    keys = sum(len(slots) for _, slots in entries)
    base, state = 21_000, 0
    if numbers.frozen:
        base = 12_000
        if is_creation:
            base += numbers.create
        elif tx.to != sender:
            base += 3_000 + (6_000 if tx.value else 0)
    authorizations = len(authorizations_of(tx))
    regular = base + sum(4 if byte == 0 else 16 for byte in tx.data)
    if is_creation:
        regular += INIT_CODE_WORD * (-(-len(tx.data) // 32))
    if is_creation and not numbers.frozen:
        regular += numbers.create
        state += block.account_gas
    regular += numbers.list_address * len(entries) + numbers.list_key * keys
    regular += numbers.authorization * authorizations
    if not numbers.frozen:
        bytes_each = numbers.account_bytes + numbers.delegation_bytes
        state += block.state_gas(bytes_each * authorizations)
    floor = base + FLOOR_OF_BYTE * (len(tx.data) + 20 * len(entries) + 32 * keys)
    return Costs(regular, state, floor)


def check(block: Block, sums: Sums, tx: Any, costs: Costs) -> None:
    """Raises InvalidBlock if the transaction is invalid or does not fit into the block."""
    gas, numbers = int(tx.gas), block.numbers
    refuse("F gas limit above the total cap", gas > numbers.most_gas)
    refuse("intrinsic gas too low", costs.regular + costs.state > gas)
    refuse("floor too high", costs.floor > gas)
    refuse("intrinsic gas above the cap", max(costs.regular, costs.floor) > TRANSACTION_GAS_CAP)
    if int(tx.nonce) >= 2**64 - 1:
        raise InvalidBlock("nonce")
    is_creation = tx.to == Bytes0(b"")
    refuse("init code too long", is_creation and len(tx.data) > 2 * numbers.code_limit)
    limit = int(block.block_gas_limit)
    own_state, own_regular = (0, 0) if numbers.frozen else (costs.state, costs.regular)
    most = min(TRANSACTION_GAS_CAP, gas - own_state)
    refuse("no room for gas", most > limit - sums.regular)
    refuse("no room for state gas", gas - own_regular > limit - sums.state)


def refuse(rule: str, when: bool) -> None:
    """Counts the rule and raises InvalidBlock with its name if ``when`` is true."""
    reach(f"transactions: {rule}", when)
    if when:
        raise InvalidBlock(rule)


@dataclass
class Run:
    """A valid transaction during its execution."""

    block: Block
    tx: Any
    sender: Address
    price: Uint
    blob_hashes: tuple[Any, ...]
    costs: Costs
    purse: Purse
    state_at_start: int = 0
    warm: set[Address] = field(default_factory=set)
    error: Exception | None = None
    frame: Frame | None = None
    transient: TransientStorage = field(default_factory=TransientStorage)

    @property
    def is_creation(self) -> bool:
        return self.tx.to == Bytes0(b"")

    @property
    def target(self) -> Address:
        """Returns the recipient, or the address of the new contract."""
        if not self.is_creation:
            return self.tx.to
        nonce = get_account(self.block.state, self.sender).nonce - Uint(1)
        return compute_contract_address(self.sender, nonce)

    # --- before the first frame ---

    def begin(self) -> None:
        """Pays the upfront cost, increments the nonce, and warms addresses."""
        state, tx = self.block.state, self.tx
        self.block.recorder.touch(self.sender)
        self.block.recorder.touch(self.block.coinbase)
        increment_nonce(state, self.sender)
        fee = tx.gas * self.price
        if isinstance(tx, fork.BlobTransaction):
            fee += calculate_data_fee(self.block.excess_blob_gas, tx)
        balance = Uint(get_account(state, self.sender).balance) - fee
        set_account_balance(state, self.sender, U256(balance))
        self.warm |= {self.sender, self.target, self.block.coinbase, *PRE_COMPILED_CONTRACTS}
        self.warm |= {address for address, _ in access_list_of(tx)}

    def authorities(self) -> list[tuple[Any, Address]]:
        """Returns the authorizations with a valid signature, each with its signer."""
        found = []
        for item in authorizations_of(self.tx):
            if item.chain_id not in (self.block.chain_id, U256(0)) or item.nonce >= U64.MAX_VALUE:
                reach("delegations: authorization refused")
                continue
            try:
                found.append((item, recover_authority(item)))
            except InvalidSignatureError:
                continue
        return found

    def authorize(self) -> None:
        """Applies the authorizations."""
        state = self.block.state
        written = {self.sender} | ({self.tx.to} if self.tx.value else set())
        marked: set[Address] = set()
        for item, authority in self.authorities():
            self.warm.add(authority)
            self.block.recorder.touch(authority)
            account = get_account(state, authority)
            is_contract = account.code and delegate_of(account.code) is None
            if is_contract or account.nonce != item.nonce:
                reach("delegations: authorization refused")
                continue
            reach("delegations: cleared", account.code and item.address == NOBODY)
            code = b"" if item.address == NOBODY else EOA_DELEGATION_MARKER + item.address
            if not self.block.numbers.frozen:
                if account_exists(state, authority):
                    reach("delegations: S account exists")
                    self.purse.reservoir += self.block.account_gas
            else:
                if not is_account_alive(state, authority):
                    charge_state(self.purse, self.block.account_gas)
                    reach("delegations: F pays for an account")
                if authority not in written:
                    charge(self.purse, 9_000)
                is_paid = (
                    "F write paid before" if authority in written else "F pays for a first write"
                )
                reach(f"delegations: {is_paid}")
                if account.code:
                    marked.add(authority)
                elif code:
                    self.mark(authority, marked)
            written.add(authority)
            set_code(state, authority, Bytes(code))
            increment_nonce(state, authority)

    def mark(self, authority: Address, marked: set[Address]) -> None:
        """Charges for the bytes of the authority's delegation, once per authority."""
        reach("delegations: F delegation paid before", authority in marked)
        if authority not in marked:
            charge_state(self.purse, self.block.state_gas(self.block.numbers.delegation_bytes))
            reach("delegations: F pays for the delegation")
            marked.add(authority)

    def arrive(self) -> tuple[int, Address | None]:
        """Reads the recipient's account and charges for it.

        Returns the state gas paid, and the delegate if the recipient is a delegation.
        """
        block, target = self.block, self.target
        block.recorder.touch(target)
        paid, frozen = 0, block.numbers.frozen
        is_birth = self.is_creation or bool(self.tx.value)
        if frozen and is_birth and not is_account_alive(block.state, target):
            paid = block.account_gas
            charge_state(self.purse, paid)
        if self.is_creation:
            is_new = not is_account_alive(block.state, target)
            reach("creations: transaction: new account", is_new)
            reach("creations: F transaction: old account", frozen and not is_new)
        delegate = None if self.is_creation else delegate_of(get_account(block.state, target).code)
        if delegate is not None:
            reach("delegations: recipient delegates")
            reach("delegations: sender delegates and calls itself", target == self.sender)
            if frozen:
                reach("delegations: F delegate of the recipient is warm", delegate in self.warm)
                charge(self.purse, WARM if delegate in self.warm else block.numbers.cold_account)
            self.warm.add(delegate)
            block.recorder.touch(delegate)
        return paid, delegate

    # --- the frame ---

    def execute(self) -> None:
        """Applies the authorizations, charges for the recipient, and runs the first frame."""
        state, start = self.block.state, self.purse.reservoir
        begin_transaction(state, self.transient)
        is_authorized = False
        try:
            self.authorize()
            is_authorized = True
            paid, delegate = self.arrive()
        except OutOfGasError as error:
            where = "at the recipient" if is_authorized else "among authorizations"
            reach(f"delegations: F gas ends {where}")
            rollback_transaction(state, self.transient)
            self.error = error
            self.purse = Purse(Uint(0), start)
            return
        self.run_frame(paid, delegate)
        commit_transaction(state, self.transient)

    def run_frame(self, paid: int, delegate: Address | None) -> None:
        frozen = self.block.numbers.frozen
        if self.is_creation and is_taken(self.block, self.target):
            reach("creations: transaction: collision")
            self.error = AddressCollision()
            self.purse.gas_left = Uint(0)
            if not frozen:
                self.purse.reservoir = 0
            return
        message = self.message(delegate)
        frame = (run_creation if self.is_creation else run_message)(message)
        self.frame, self.error = frame, frame.error
        if not frozen:
            return
        self.purse.gas_left = Uint(0)
        return_gas(self.purse, frame)
        if frame.error:
            is_reverted = type(frame.error).__name__ == "Revert"
            reach("creations: F transaction: account given back", paid and self.is_creation)
            refill(self.purse, paid)
            if not is_reverted:
                self.purse.gas_left = Uint(0)

    def message(self, delegate: Address | None) -> Call:
        """Returns the message of the first frame."""
        tx, block = self.tx, self.block
        keys = {(address, slot) for address, slots in access_list_of(tx) for slot in slots}
        environment = TransactionEnvironment(
            origin=self.sender, gas_price=self.price, gas=self.purse.gas_left,
            access_list_addresses=set(), access_list_storage_keys=set(),
            transient_storage=self.transient, blob_versioned_hashes=self.blob_hashes,
            authorizations=(), index_in_block=None, tx_hash=None,
        )  # fmt: skip
        source = delegate or self.target
        code = tx.data if self.is_creation else get_account(block.state, source).code
        return Call(
            block_env=block, tx_env=environment, caller=self.sender, target=tx.to,
            current_target=self.target, gas=self.purse.gas_left, value=tx.value,
            data=Bytes(b"") if self.is_creation else tx.data,
            code_address=None if self.is_creation else source, code=code, depth=Uint(0),
            should_transfer_value=True, is_static=False, accessed_addresses=set(self.warm),
            accessed_storage_keys=keys, disable_precompiles=delegate is not None,
            parent_evm=None, reservoir=self.purse.reservoir,
        )  # fmt: skip

    # --- the end ---

    def counted(self) -> tuple[int, int, int]:
        """Returns the gas left over, and the regular gas and state gas that the block counts."""
        if self.block.numbers.frozen:
            left = int(self.purse.gas_left) + self.purse.reservoir
            state = self.state_at_start - self.purse.reservoir + self.purse.spilled
            return left, int(self.tx.gas) - left - state, state
        if self.frame is None:
            return 0, self.costs.regular, self.costs.state
        frame, returned = self.frame, self.frame.state
        if not frame.error:
            sizes = sum(map(self.destroyed_size, frame.accounts_to_delete))
            returned = min(frame.state, self.block.state_gas(sizes))
            reach("SELFDESTRUCT: S state gas given back", returned)
        left = int(frame.gas_left) + frame.reservoir + returned
        used_state = self.costs.state + frame.state - returned
        return left, self.costs.regular + frame.regular, used_state

    def destroyed_size(self, address: Address) -> int:
        """Returns the bytes of state that a destroyed contract frees (April)."""
        numbers, state = self.block.numbers, self.block.state
        trie = state._storage_tries.get(address)
        slots = 0 if trie is None else sum(1 for value in trie._data.values() if value)
        code = get_account(state, address).code
        return numbers.account_bytes + numbers.slot_bytes * slots + len(code)

    def finish(self) -> Outcome:
        """Applies refund, fees and destroyed accounts."""
        left, regular, state_gas = self.counted()
        is_good = self.error is None and self.frame is not None
        counter = self.frame.refund_counter if is_good and self.frame else 0
        used = int(self.tx.gas) - left
        refund = min(used // 5, counter)
        paid = max(used - refund, self.costs.floor)
        self.note_costs(used, counter, regular)
        state, coinbase = self.block.state, self.block.coinbase
        back = (int(self.tx.gas) - paid) * int(self.price)
        tip = int(self.price) - int(self.block.base_fee_per_gas)
        self.add_balance(self.sender, back)
        self.add_balance(coinbase, paid * tip)
        logs = self.frame.logs if is_good and self.frame else ()
        doomed = sorted(self.frame.accounts_to_delete) if is_good and self.frame else []
        for address in doomed:
            balance = get_account(state, address).balance
            if not self.block.numbers.frozen and balance:
                reach("logs: S burn at the end")
                logs += (burn_log(address, balance),)
        for address in doomed:
            self.destroy(address)
        output = self.frame.output if self.frame else b""
        return Outcome(
            self.error, output, paid, refund, max(regular, self.costs.floor), state_gas, logs
        )

    def note_costs(self, used: int, counter: int, regular: int) -> None:
        """Counts the rules that determine what the sender pays and what the block counts."""
        refund, floor = min(used // 5, counter), self.costs.floor
        reach("transactions: floor decides", used - refund < floor)
        is_alone = regular < floor <= used - refund
        reach("transactions: floor decides for the block alone", is_alone)
        is_listed = used - refund < floor and access_list_of(self.tx)
        reach("transactions: floor with an access list", is_listed)
        reach("transactions: refund", refund)
        reach("transactions: refund of a fifth", refund and refund < counter)
        reach("transactions: block counts before refunds", refund and used > floor)

    def add_balance(self, address: Address, amount: int) -> None:
        balance = get_account(self.block.state, address).balance
        set_account_balance(self.block.state, address, balance + U256(amount))

    def destroy(self, address: Address) -> None:
        state = self.block.state
        balance = get_account(state, address).balance
        reach("SELFDESTRUCT: of a new contract")
        reach("SELFDESTRUCT: of a new contract with slots", address in state._storage_tries)
        destroy_account(state, address)
        if self.block.numbers.frozen and balance:
            reach("SELFDESTRUCT: F ether stays")
            destroy_storage(state, address)
            set_account(state, address, Account(nonce=Uint(0), balance=balance, code=Bytes(b"")))


def process_transaction(block: Block, sums: Sums, tx: Any, sender: Address) -> Outcome:
    """Executes a transaction. Raises InvalidBlock if it is invalid in the block."""
    costs = costs_of(block, tx, sender)
    check(block, sums, tx, costs)
    output = BlockOutput(blob_gas_used=sums.blob_gas)
    _, price, blob_hashes, blob_gas = fork.check_transaction(
        replace(block, block_gas_limit=Uint(2**64)), output, tx
    )
    rest = int(tx.gas) - costs.regular - costs.state
    gas = min(TRANSACTION_GAS_CAP - costs.regular, rest)
    purse = Purse(Uint(gas), rest - gas)
    reach("state gas: transaction with a reservoir", rest - gas)
    run = Run(block, tx, sender, price, blob_hashes, costs, purse, state_at_start=rest - gas)
    run.begin()
    run.execute()
    outcome = run.finish()
    sums.regular += outcome.regular
    sums.state += outcome.state
    sums.blob_gas += blob_gas
    return outcome
