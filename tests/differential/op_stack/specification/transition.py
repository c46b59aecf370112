"""Executes blocks: system calls, deposits and users' transactions.

Source: deposits, "Execution"; exec-engine, "L1-Cost fees", "Fee Vaults", "Deposited transaction
processing"; regolith/overview; exec-engine of canyon, ecotone, fjord, isthmus, jovian and karst.
"""

from dataclasses import dataclass, field
from typing import Any

from ethereum.exceptions import EthereumException
from ethereum_rlp.exceptions import RLPException

from .attributes import L1_BLOCK, FeeParameters, parameters_from_storage
from .constants import (
    BASE_FEE_VAULT,
    BEACON_ROOTS,
    BLOCK_HASHES,
    CREATE2_DEPLOYER,
    CREATE2_DEPLOYER_CODE,
    L1_FEE_VAULT,
    OPERATOR_FEE_VAULT,
)
from .deposits import DEPOSIT_TYPE, Deposit, decode_deposit
from .encoding import DecodingError, word
from .fees import da_footprint, l1_cost, l1_gas_used, operator_fee
from .forks import Fork
from .machine import Machine, Message, Outcome
from .receipts import Log, Receipt

MOST_INIT_CODE = 49_152
MOST_GAS = 1 << 24
MOST_NONCE = (1 << 64) - 1
REFUND_QUOTIENT = 5
DELEGATION = bytes.fromhex("ef0100")
DELEGATION_BYTES = 23
# Type of a signed transaction -> the fork from which it is valid.
TYPES = {0: Fork.BEDROCK, 1: Fork.BEDROCK, 2: Fork.BEDROCK, 4: Fork.ISTHMUS}
FIRST_LEGACY_BYTE = 0xC0


class InvalidBlock(Exception):
    """Raised for a transaction that is invalid at its position in the block."""


@dataclass(frozen=True)
class Done:
    """An executed transaction with its receipt, L1 fee and operator fee."""

    receipt: Receipt
    gas_used: int
    sender: bytes
    l1_fee: int = 0
    l1_gas_used: int = 0
    operator_fee: int = 0
    footprint: int = 0
    error: str | None = None


@dataclass
class Block:
    """A block during its execution."""

    machine: Machine
    fork: Fork
    is_first_of_fork: bool
    takes_users: bool = True
    gas_used: int = 0
    footprint: int = 0
    parameters: FeeParameters | None = None
    done: list[Done] = field(default_factory=list)

    @property
    def gas_left(self) -> int:
        return self.machine.environment.gas_limit - self.gas_used

    def begin(self) -> None:
        """Makes the system calls and the code changes that precede the first transaction."""
        environment = self.machine.environment
        if self.fork >= Fork.ISTHMUS:
            self.machine.system_call(BLOCK_HASHES, environment.block_hashes[-1])
        if self.fork >= Fork.ECOTONE:
            self.machine.system_call(BEACON_ROOTS, environment.parent_beacon_block_root)
        if self.fork == Fork.CANYON and self.is_first_of_fork:
            self.machine.set_code(CREATE2_DEPLOYER, CREATE2_DEPLOYER_CODE)

    def execute(self, raw: bytes) -> Done:
        """Executes a transaction. Raises InvalidBlock, without changes, if it is invalid."""
        is_deposit = raw[:1] == bytes([DEPOSIT_TYPE])
        done = self.deposit(raw) if is_deposit else self.user_transaction(raw)
        self.done.append(done)
        return done

    # --- deposits ---

    def deposit(self, raw: bytes) -> Done:
        """Mints the deposit's ether, then runs its message.

        If the message fails, the mint and the incremented nonce remain (deposits, "Execution").
        """
        try:
            deposit = decode_deposit(raw)
        except DecodingError as error:
            raise InvalidBlock(f"undecodable: {error}") from error
        # Before Regolith, system deposits do not count towards the gas limit. op-revm does not
        # limit other deposits either.
        is_counted = self.fork >= Fork.REGOLITH or not deposit.is_system
        if is_counted and deposit.gas > self.gas_left:
            raise InvalidBlock("the block has too little gas left")
        self.machine.add_balance(deposit.sender, deposit.mint)
        nonce = self.machine.nonce(deposit.sender)
        outcome, floor = self.deposit_outcome(deposit)
        gas_used = self.deposit_gas(deposit, outcome, floor)
        self.gas_used += gas_used
        logs = outcome.logs if outcome.error is None else ()
        receipt = Receipt(DEPOSIT_TYPE, outcome.error is None, self.gas_used, logs, nonce)
        return Done(receipt, gas_used, deposit.sender, error=outcome.error)

    def deposit_outcome(self, deposit: Deposit) -> tuple[Outcome, int]:
        """Runs the message of a deposit. Returns the outcome and the calldata floor.

        Increments the sender's nonce even if the message fails.
        """
        machine = self.machine
        wanted = machine.as_transaction(deposit.gas, deposit.to, deposit.value, deposit.data)
        floor, intrinsic = machine.floor_and_intrinsic(wanted)
        refusal = self.refusal_of(deposit, max(floor, intrinsic))
        machine.increment_nonce(deposit.sender)
        if refusal:
            return Outcome(refusal, 0, 0, (), ()), 0
        warm = frozenset([machine.environment.coinbase] if self.fork >= Fork.CANYON else [])
        outcome = machine.run(
            Message(
                sender=deposit.sender,
                to=deposit.to,
                value=deposit.value,
                data=deposit.data,
                gas=deposit.gas - intrinsic,
                gas_price=0,
                warm=warm,
            )
        )
        machine.destroy(outcome.destroyed)
        return outcome, floor

    def refusal_of(self, deposit: Deposit, least_gas: int) -> str | None:
        """Returns why a deposit fails before its message runs, or None."""
        if deposit.is_system and self.fork >= Fork.REGOLITH:
            return "a system transaction after Bedrock"
        if deposit.gas < least_gas:
            return "intrinsic gas too high"
        if self.machine.balance(deposit.sender) < deposit.value:
            return "balance too low for value"
        if not deposit.to and len(deposit.data) > MOST_INIT_CODE and self.fork >= Fork.CANYON:
            return "init code too large"
        return None

    def deposit_gas(self, deposit: Deposit, outcome: Outcome, floor: int) -> int:
        """Returns the gas used of a deposit, as receipt and block show it (regolith/overview)."""
        if self.fork >= Fork.REGOLITH:
            return gas_after_refund(deposit.gas, outcome, floor)
        return 0 if deposit.is_system else deposit.gas

    # --- users' transactions ---

    def user_transaction(self, raw: bytes) -> Done:
        """Executes by Ethereum's rules. The sender pays L1 fee and operator fee in advance."""
        transaction, kind = self.decoded(raw)
        parameters = self.fee_parameters()
        gas_limit = int(transaction.gas)
        floor, intrinsic = self.checked_gas(transaction, gas_limit)
        footprint = da_footprint(raw, parameters, self.fork)
        if self.footprint + footprint > self.machine.environment.gas_limit:
            raise InvalidBlock("DA footprint above the gas limit")
        l1_fee = l1_cost(raw, parameters, self.fork)
        beside = l1_fee + operator_fee(gas_limit, parameters, self.fork)
        sender, price = self.checked_sender(transaction, kind, beside)
        self.machine.increment_nonce(sender)
        self.machine.add_balance(sender, -(gas_limit * price + beside))
        outcome = self.machine.run(self.message_of(transaction, sender, price, intrinsic))
        gas_used = gas_after_refund(gas_limit, outcome, floor)
        charged = operator_fee(gas_used, parameters, self.fork)
        back = (gas_limit - gas_used) * price + beside - l1_fee - charged
        self.machine.add_balance(sender, back)
        self.pay(gas_used, price, l1_fee, charged)
        self.machine.destroy(outcome.destroyed)
        self.gas_used += gas_used
        self.footprint += footprint
        logs = outcome.logs if outcome.error is None else ()
        receipt = Receipt(kind, outcome.error is None, self.gas_used, logs)
        data_gas = l1_gas_used(raw, parameters, self.fork)
        return Done(
            receipt, gas_used, sender, l1_fee, data_gas, charged, footprint, error=outcome.error
        )

    def fee_parameters(self) -> FeeParameters:
        """Returns the block's fee parameters, read at the first transaction after the deposits."""
        if self.parameters is None:
            self.parameters = parameters_from_storage(
                lambda slot: self.machine.slot(L1_BLOCK, word(slot))
            )
        return self.parameters

    def pay(self, gas_used: int, price: int, l1_fee: int, charged: int) -> None:
        """Pays the fees to the vaults. The sender's refund precedes (exec-engine, "Fee Vaults")."""
        environment = self.machine.environment
        base_fee = environment.base_fee
        self.machine.add_balance(environment.coinbase, gas_used * (price - base_fee))
        self.machine.add_balance(L1_FEE_VAULT, l1_fee)
        self.machine.add_balance(BASE_FEE_VAULT, gas_used * base_fee)
        if self.fork >= Fork.ISTHMUS:
            self.machine.add_balance(OPERATOR_FEE_VAULT, charged)

    def decoded(self, raw: bytes) -> tuple[Any, int]:
        """Decodes a user's transaction. Returns it with its type.

        Raises InvalidBlock if not valid here.
        """
        kind = 0 if raw[0] >= FIRST_LEGACY_BYTE else raw[0]
        if TYPES.get(kind, Fork.KARST + 1) > self.fork:
            raise InvalidBlock("transaction type not supported")
        if not self.takes_users:
            raise InvalidBlock("only deposits in the first block of a fork")
        try:
            return self.machine.decode(raw), kind
        except (RLPException, EthereumException, ValueError) as error:
            raise InvalidBlock("undecodable") from error

    def checked_gas(self, transaction: Any, gas_limit: int) -> tuple[int, int]:
        """Returns the calldata floor and the intrinsic gas.

        Raises InvalidBlock if the transaction's gas limit is below either or above a maximum, or if
        the init code is too large.
        """
        floor, intrinsic = self.machine.floor_and_intrinsic(transaction)
        if gas_limit < max(floor, intrinsic):
            raise InvalidBlock("intrinsic gas too high")
        if gas_limit > self.gas_left:
            raise InvalidBlock("the block has too little gas left")
        if self.fork >= Fork.KARST and gas_limit > MOST_GAS:
            raise InvalidBlock("more gas than a transaction may have")
        is_creation = not bytes(transaction.to)
        if is_creation and len(transaction.data) > MOST_INIT_CODE and self.fork >= Fork.CANYON:
            raise InvalidBlock("init code too large")
        return floor, intrinsic

    def checked_sender(self, transaction: Any, kind: int, beside: int) -> tuple[bytes, int]:
        """Returns the sender and the gas price.

        ``beside``: L1 fee and operator fee. Raises InvalidBlock if signature, nonce or balance is
        invalid.
        """
        machine = self.machine
        if kind and int(transaction.chain_id) != machine.environment.chain_id:
            raise InvalidBlock("another chain's transaction")
        if kind == 4 and not (bytes(transaction.to) and transaction.authorizations):
            raise InvalidBlock("a delegation without target or without authorizations")
        try:
            sender = machine.sender_of(transaction)
        except (EthereumException, ValueError) as error:
            raise InvalidBlock("no valid signature") from error
        price, most = prices_of(transaction, kind, machine.environment.base_fee)
        code = machine.code(sender)
        if code and not (code[:3] == DELEGATION and len(code) == DELEGATION_BYTES):
            raise InvalidBlock("the sender is a contract")
        nonce = int(transaction.nonce)
        if nonce != machine.nonce(sender) or nonce >= MOST_NONCE:
            raise InvalidBlock("nonce too low or too high")
        need = int(transaction.gas) * most + int(transaction.value) + beside
        if machine.balance(sender) < need:
            raise InvalidBlock("insufficient funds")
        return sender, price

    def message_of(self, transaction: Any, sender: bytes, price: int, intrinsic: int) -> Message:
        warm = {self.machine.environment.coinbase} if self.fork >= Fork.CANYON else set()
        slots = set()
        for access in getattr(transaction, "access_list", ()):
            warm.add(bytes(access.account))
            slots.update((bytes(access.account), bytes(slot)) for slot in access.slots)
        return Message(
            sender=sender,
            to=bytes(transaction.to),
            value=int(transaction.value),
            data=bytes(transaction.data),
            gas=int(transaction.gas) - intrinsic,
            gas_price=price,
            warm=frozenset(warm),
            warm_slots=frozenset(slots),
            authorizations=getattr(transaction, "authorizations", ()),
        )


def prices_of(transaction: Any, kind: int, base_fee: int) -> tuple[int, int]:
    """Returns the effective gas price, and the highest price that the sender must afford."""
    if kind < 2:
        price = most = int(transaction.gas_price)
    else:
        most, tip = int(transaction.max_fee_per_gas), int(transaction.max_priority_fee_per_gas)
        if tip > most:
            raise InvalidBlock("a tip above the fee cap")
        price = min(most, base_fee + tip)
    if most < base_fee:
        raise InvalidBlock("a fee cap below the base fee")
    return price, most


def gas_after_refund(gas_limit: int, outcome: Outcome, floor: int) -> int:
    """Returns the gas used after the refund (EIP-3529), at least the calldata floor (EIP-7623)."""
    used = gas_limit - outcome.gas_left
    used -= min(used // REFUND_QUOTIENT, outcome.refund_counter)
    return max(used, floor)


def logs_of(block: Block) -> tuple[Log, ...]:
    return tuple(log for done in block.done for log in done.receipt.logs)
