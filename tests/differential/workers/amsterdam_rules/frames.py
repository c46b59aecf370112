"""Runs messages: the loop over opcodes, transfers and their logs, creations."""

from collections.abc import Callable
from typing import Any

from ethereum.crypto.hash import keccak256
from ethereum.forks.bpo2.blocks import Log
from ethereum.forks.bpo2.fork_types import Address
from ethereum.forks.bpo2.state import (
    begin_transaction,
    commit_transaction,
    destroy_storage,
    get_account,
    increment_nonce,
    mark_account_created,
    move_ether,
    rollback_transaction,
    set_code,
)
from ethereum.forks.bpo2.vm.eoa_delegation import get_delegated_code_address
from ethereum.forks.bpo2.vm.exceptions import (
    ExceptionalHalt,
    InvalidContractPrefix,
    InvalidOpcode,
    OutOfGasError,
    Revert,
)
from ethereum.forks.bpo2.vm.precompiled_contracts.mapping import PRE_COMPILED_CONTRACTS
from ethereum.forks.bpo2.vm.runtime import get_valid_jump_destinations
from ethereum_types.bytes import Bytes, Bytes0, Bytes32
from ethereum_types.numeric import U256, Uint

from .gas import Block, Call, Frame, burn, charge, charge_state
from .numbers import CODE_WORD
from .reach import reach

DEPTH = 1024
LOGGER = Address(bytes.fromhex("fffffffffffffffffffffffffffffffffffffffe"))
TRANSFER = keccak256(b"Transfer(address,address,uint256)")
BURN = keccak256(b"Burn(address,uint256)")
OPERATIONS: dict[int, Callable[[Any], None]] = {}


def topic(address: bytes) -> Bytes32:
    return Bytes32(bytes(12) + address)


def transfer_log(sender: Address, to: Address, value: U256) -> Log:
    """Returns the log of a transfer of ether."""
    topics = (TRANSFER, topic(sender), topic(to))
    return Log(address=LOGGER, topics=topics, data=value.to_be_bytes32())


def burn_log(address: Address, value: U256) -> Log:
    """Returns the log of burnt ether."""
    return Log(address=LOGGER, topics=(BURN, topic(address)), data=value.to_be_bytes32())


def delegate_of(code: bytes) -> Address | None:
    """Returns the target of a delegation (EIP-7702), or None if the code is no delegation."""
    return get_delegated_code_address(Bytes(code))


def frame_of(message: Call) -> Frame:
    return Frame(
        pc=Uint(0), stack=[], memory=bytearray(), code=message.code, gas_left=message.gas,
        valid_jump_destinations=get_valid_jump_destinations(message.code), logs=(),
        refund_counter=0, running=True, message=message, output=b"", accounts_to_delete=set(),
        return_data=b"", error=None, accessed_addresses=message.accessed_addresses,
        accessed_storage_keys=message.accessed_storage_keys, reservoir=message.reservoir,
    )  # fmt: skip


def run_message(message: Call) -> Frame:
    """Transfers the value and runs the code."""
    state, transient = message.block_env.state, message.tx_env.transient_storage
    frame = frame_of(message)
    begin_transaction(state, transient)
    if message.should_transfer_value and message.value != 0:
        move_ether(state, message.caller, message.current_target, message.value)
        reach("logs: value to itself", message.caller == message.current_target)
        if message.caller != message.current_target:
            reach(f"logs: of {cause_of(message)}")
            frame.logs = (transfer_log(message.caller, message.current_target, message.value),)
    try:
        step_through(frame)
    except ExceptionalHalt as error:
        halt(frame, error)
    except Revert as error:
        frame.error = error
    (rollback_transaction if frame.error else commit_transaction)(state, transient)
    return frame


def cause_of(message: Call) -> str:
    """Returns what caused a value transfer, for the name of the counted rule."""
    if message.depth:
        return "CREATE" if message.target == Bytes0() else "CALL"
    return "a creation transaction" if message.target == Bytes0() else "a transaction"


def halt(frame: Frame, error: Exception) -> None:
    burn(frame)
    frame.output = b""
    frame.error = error


def step_through(frame: Frame) -> None:
    """Runs a precompile, or runs code until it stops."""
    message = frame.message
    if message.code_address in PRE_COMPILED_CONTRACTS:
        reach("delegations: delegate is a precompile", message.disable_precompiles)
        if not message.disable_precompiles:
            PRE_COMPILED_CONTRACTS[message.code_address](frame)
        return
    code = frame.code
    while frame.running and int(frame.pc) < len(code):
        operation = OPERATIONS.get(code[int(frame.pc)])
        if operation is None:
            raise InvalidOpcode(code[int(frame.pc)])
        operation(frame)


def run_creation(message: Call) -> Frame:
    """Runs init code and stores its output as code."""
    state, transient = message.block_env.state, message.tx_env.transient_storage
    begin_transaction(state, transient)
    destroy_storage(state, message.current_target)
    mark_account_created(state, message.current_target)
    increment_nonce(state, message.current_target)
    frame = run_message(message)
    if not frame.error:
        try:
            pay_deposit(frame)
        except ExceptionalHalt as error:
            halt(frame, error)
        else:
            set_code(state, message.current_target, Bytes(frame.output))
    (rollback_transaction if frame.error else commit_transaction)(state, transient)
    return frame


def pay_deposit(frame: Frame) -> None:
    """Checks the code of a new contract, and charges for its hash and size."""
    code, block = frame.output, frame.block
    if code[:1] == b"\xef":
        reach("creations: code begins with EF")
        raise InvalidContractPrefix
    if len(code) > block.numbers.code_limit:
        reach("creations: code too long")
        raise OutOfGasError
    hash_cost, size_cost = CODE_WORD * (-(-len(code) // 32)), block.state_gas(len(code))
    gas = int(frame.gas_left)
    reach("creations: hash not to be paid", gas < hash_cost)
    charge(frame, hash_cost)
    reach("creations: bytes not to be paid", gas - hash_cost + frame.reservoir < size_cost)
    charge_state(frame, size_cost)
    reach("creations: code above 24 KiB", len(code) > 0x6000)
    reach("creations: longest code", len(code) == block.numbers.code_limit)


def is_taken(block: Block, address: Address) -> bool:
    """Returns whether a creation collides with an account: its code, nonce, or (April) storage."""
    account = get_account(block.state, address)
    if account.nonce or account.code:
        return True
    has_storage = address in block.state._storage_tries
    is_april = not block.numbers.frozen
    name = "S collision by storage" if is_april else "F storage is no collision"
    reach(f"creations: {name}", has_storage)
    return is_april and has_storage
