"""Implements CALL, CALLCODE, DELEGATECALL, STATICCALL, CREATE, CREATE2 and SELFDESTRUCT."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from ethereum.forks.bpo2.fork_types import Address
from ethereum.forks.bpo2.state import (
    get_account,
    increment_nonce,
    is_account_alive,
    move_ether,
    set_account_balance,
)
from ethereum.forks.bpo2.utils.address import (
    compute_contract_address,
    compute_create2_contract_address,
    to_address_masked,
)
from ethereum.forks.bpo2.vm.exceptions import OutOfGasError, WriteInStaticContext
from ethereum.forks.bpo2.vm.gas import calculate_gas_extend_memory
from ethereum.forks.bpo2.vm.memory import memory_read_bytes, memory_write
from ethereum.forks.bpo2.vm.stack import pop, push
from ethereum_types.bytes import Bytes, Bytes0
from ethereum_types.numeric import U256, Uint

from .frames import (
    DEPTH,
    burn_log,
    delegate_of,
    is_taken,
    run_creation,
    run_message,
    transfer_log,
)
from .gas import Call, Frame, charge, charge_state, give_back, merge, need
from .numbers import HASH_WORD, INIT_CODE_WORD, SELFDESTRUCT, STIPEND, WARM
from .reach import reach


@dataclass
class Arguments:
    """The operands of a call."""

    gas: int
    address: Address
    value: U256
    input_at: U256
    input_size: U256
    output_at: U256
    output_size: U256


def pop_arguments(frame: Frame, has_value: bool) -> Arguments:
    gas = int(pop(frame.stack))
    address = to_address_masked(pop(frame.stack))
    value = pop(frame.stack) if has_value else U256(0)
    return Arguments(gas, address, value, *[pop(frame.stack) for _ in range(4)])


def access_cost(frame: Frame, address: Address) -> int:
    """Returns the gas of accessing an account, which may be cold. Does not warm the account."""
    return WARM if address in frame.accessed_addresses else frame.block.numbers.cold_account


def access(frame: Frame, address: Address) -> Any:
    """Returns the account. Warms it and adds it to the access list."""
    frame.accessed_addresses.add(address)
    frame.block.recorder.touch(address)
    return get_account(frame.block.state, address)


def can_pay(frame: Frame, state_gas: int) -> bool:
    """Returns whether regular gas and reservoir together pay for this state gas."""
    return int(frame.gas_left) + frame.reservoir >= state_gas


def hand_over(frame: Frame) -> int:
    """Returns the reservoir for a child frame.

    Under the rules of April, the caller's reservoir is 0 until the child ends.
    """
    reservoir = frame.reservoir
    if not frame.block.numbers.frozen:
        frame.reservoir = 0
    return reservoir


def call(frame: Frame, kind: str) -> None:
    """Executes CALL, CALLCODE, DELEGATECALL or STATICCALL."""
    given = pop_arguments(frame, kind in ("CALL", "CALLCODE"))
    if kind == "CALL" and frame.message.is_static and given.value:
        reach("calls: value in a static call")
        raise WriteInStaticContext
    spans = [(given.input_at, given.input_size), (given.output_at, given.output_size)]
    extension = calculate_gas_extend_memory(frame.memory, spans)
    cost = access_cost(frame, given.address) + int(extension.cost)
    if given.value:
        cost += frame.block.numbers.call_value
    reach("calls: gas ends before the target is read", int(frame.gas_left) < cost)
    need(frame, cost)
    code, code_address = access(frame, given.address).code, given.address
    delegate = delegate_of(code)
    if delegate is not None:
        cost += access_cost(frame, delegate)
        reach("delegations: gas ends at the delegate", int(frame.gas_left) < cost)
        need(frame, cost)
        reach("delegations: call of a delegation")
        reach("delegations: delegate is warm", delegate in frame.accessed_addresses)
        code, code_address = access(frame, delegate).code, delegate
    charge(frame, cost)
    state_gas = 0
    if kind == "CALL" and given.value and not is_account_alive(frame.block.state, given.address):
        state_gas = frame.block.account_gas
        reach("calls: account not to be paid", not can_pay(frame, state_gas))
        charge_state(frame, state_gas)
        reach("calls: value to nobody")
    left = int(frame.gas_left)
    passed = min(given.gas, left - left // 64)
    frame.gas_left -= Uint(passed)
    if given.value:
        passed += STIPEND
        frame.regular -= STIPEND
    frame.memory += b"\x00" * int(extension.expand_by)
    frame.return_data = b""
    if not run_call(frame, kind, given, passed, code, code_address, delegate is not None):
        push(frame.stack, U256(0))
        if state_gas and frame.block.numbers.frozen:
            reach("calls: F account given back")
            give_back(frame, state_gas)
    frame.pc += Uint(1)


def run_call(
    frame: Frame, kind: str, given: Arguments, gas: int, code: Bytes, code_address: Address,
    is_delegated: bool,
) -> bool:  # fmt: skip
    """Makes the call. Pushes 1 and returns True if it succeeded."""
    message = frame.message
    balance = get_account(frame.block.state, message.current_target).balance
    if balance < given.value or int(message.depth) + 1 > DEPTH:
        reach("calls: balance too low", balance < given.value)
        frame.gas_left += Uint(gas)
        return False
    is_delegatecall = kind == "DELEGATECALL"
    target = given.address if kind in ("CALL", "STATICCALL") else message.current_target
    child = run_message(
        Call(
            block_env=message.block_env, tx_env=message.tx_env,
            caller=message.caller if is_delegatecall else message.current_target,
            target=target, current_target=target, gas=Uint(gas),
            value=message.value if is_delegatecall else given.value,
            data=memory_read_bytes(frame.memory, given.input_at, given.input_size),
            code=code, code_address=code_address, depth=message.depth + Uint(1),
            should_transfer_value=kind in ("CALL", "CALLCODE"),
            is_static=kind == "STATICCALL" or message.is_static,
            accessed_addresses=frame.accessed_addresses.copy(),
            accessed_storage_keys=frame.accessed_storage_keys.copy(),
            disable_precompiles=is_delegated, parent_evm=frame, reservoir=hand_over(frame),
        )
    )  # fmt: skip
    merge(frame, child)
    frame.return_data = child.output
    size = min(int(given.output_size), len(child.output))
    memory_write(frame.memory, given.output_at, child.output[:size])
    if child.error is None:
        push(frame.stack, U256(1))
    return child.error is None


def create(frame: Frame, is_salted: bool) -> None:
    """Executes CREATE, or CREATE2 with a salt."""
    block, message = frame.block, frame.message
    if message.is_static:
        raise WriteInStaticContext
    endowment, start, size = (pop(frame.stack) for _ in range(3))
    salt = pop(frame.stack) if is_salted else None
    extension = calculate_gas_extend_memory(frame.memory, [(start, size)])
    words = -(-int(size) // 32)
    per_word = INIT_CODE_WORD + (HASH_WORD if is_salted else 0)
    charge(frame, block.numbers.create + int(extension.cost) + per_word * words)
    if int(size) > 2 * block.numbers.code_limit:
        reach("creations: init code too long")
        raise OutOfGasError
    frame.memory += b"\x00" * int(extension.expand_by)
    init_code = Bytes(memory_read_bytes(frame.memory, start, size))
    reach("creations: init code above 48 KiB", int(size) > 0xC000)
    if not block.numbers.frozen:
        reach("creations: account not to be paid", not can_pay(frame, block.account_gas))
        charge_state(frame, block.account_gas)
    frame.return_data = b""
    creator = get_account(block.state, message.current_target)
    if salt is None:
        address = compute_contract_address(message.current_target, creator.nonce)
    else:
        address = compute_create2_contract_address(
            message.current_target, salt.to_be_bytes32(), init_code
        )
    too_poor = creator.balance < endowment
    reach("creations: balance too low", too_poor)
    reach("creations: nonce at its end", creator.nonce == Uint(2**64 - 1))
    if too_poor or creator.nonce == Uint(2**64 - 1) or int(message.depth) + 1 > DEPTH:
        if not block.numbers.frozen:
            give_back(frame, block.account_gas)
        push(frame.stack, U256(0))
    else:
        create_at(frame, address, endowment, init_code)
    frame.pc += Uint(1)


def create_at(frame: Frame, address: Address, endowment: U256, init_code: Bytes) -> None:
    """Executes the part of a creation that accesses the new address."""
    block, message = frame.block, frame.message
    access(frame, address)
    paid = block.account_gas
    if block.numbers.frozen:
        if is_account_alive(block.state, address):
            paid = 0
            account = get_account(block.state, address)
            reach("creations: F destination has ether", not account.nonce and not account.code)
        reach("creations: account not to be paid", not can_pay(frame, paid))
        charge_state(frame, paid)
    reach("creations: destination absent", not is_account_alive(block.state, address))
    left = int(frame.gas_left)
    passed = left - left // 64
    frame.gas_left -= Uint(passed)
    increment_nonce(block.state, message.current_target)
    if is_taken(block, address):
        reach("creations: collision")
        frame.regular += passed
        give_back(frame, paid)
        push(frame.stack, U256(0))
        return
    child = run_creation(
        Call(
            block_env=message.block_env, tx_env=message.tx_env, caller=message.current_target,
            target=Bytes0(), current_target=address, gas=Uint(passed), value=endowment, data=b"",
            code=init_code, code_address=None, depth=message.depth + Uint(1),
            should_transfer_value=True, is_static=False,
            accessed_addresses=frame.accessed_addresses.copy(),
            accessed_storage_keys=frame.accessed_storage_keys.copy(),
            disable_precompiles=False, parent_evm=frame, reservoir=hand_over(frame),
        )
    )  # fmt: skip
    merge(frame, child)
    if child.error:
        reach("creations: failed")
        give_back(frame, paid)
        frame.return_data = child.output
        push(frame.stack, U256(0))
    else:
        push(frame.stack, U256.from_be_bytes(address))


def selfdestruct(frame: Frame) -> None:
    """Moves the balance to the beneficiary.

    A contract created in the same transaction is destroyed when the transaction ends.
    """
    block, owner = frame.block, frame.message.current_target
    if frame.message.is_static:
        raise WriteInStaticContext
    beneficiary = to_address_masked(pop(frame.stack))
    cost = SELFDESTRUCT
    if beneficiary not in frame.accessed_addresses:
        cost += block.numbers.cold_account
    need(frame, cost)
    access(frame, beneficiary)
    balance = get_account(block.state, owner).balance
    is_birth = bool(balance) and not is_account_alive(block.state, beneficiary)
    charge(frame, cost + is_birth * block.numbers.dead_beneficiary)
    if is_birth:
        reach("SELFDESTRUCT: account not to be paid", not can_pay(frame, block.account_gas))
        charge_state(frame, block.account_gas)
        reach("SELFDESTRUCT: beneficiary is nobody")
    move_ether(block.state, owner, beneficiary, balance)
    if balance and owner != beneficiary:
        reach("logs: of SELFDESTRUCT")
        frame.logs += (transfer_log(owner, beneficiary, balance),)
    if owner in block.state.created_accounts:
        frame.accounts_to_delete.add(owner)
        if not block.numbers.frozen:
            if balance and owner == beneficiary:
                reach("logs: S burn by SELFDESTRUCT")
                frame.logs += (burn_log(owner, balance),)
            set_account_balance(block.state, owner, U256(0))
    frame.running = False


OPERATIONS = {
    0xF0: partial(create, is_salted=False),
    0xF1: partial(call, kind="CALL"),
    0xF2: partial(call, kind="CALLCODE"),
    0xF4: partial(call, kind="DELEGATECALL"),
    0xF5: partial(create, is_salted=True),
    0xFA: partial(call, kind="STATICCALL"),
    0xFF: selfdestruct,
}
