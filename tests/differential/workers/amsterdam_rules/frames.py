"""Messages: the loop over opcodes, transfers and their logs, creations."""

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
from ethereum_types.bytes import Bytes, Bytes32
from ethereum_types.numeric import U256, Uint

from .gas import Block, Call, Frame, burn, charge, charge_state
from .numbers import CODE_WORD

DEPTH = 1024
LOGGER = Address(bytes.fromhex("fffffffffffffffffffffffffffffffffffffffe"))
TRANSFER = keccak256(b"Transfer(address,address,uint256)")
BURN = keccak256(b"Burn(address,uint256)")
OPERATIONS: dict[int, Callable[[Any], None]] = {}


def topic(address: bytes) -> Bytes32:
    return Bytes32(bytes(12) + address)


def transfer_log(sender: Address, to: Address, value: U256) -> Log:
    """The log of a transfer of ether."""
    topics = (TRANSFER, topic(sender), topic(to))
    return Log(address=LOGGER, topics=topics, data=value.to_be_bytes32())


def burn_log(address: Address, value: U256) -> Log:
    """The log of ether that is gone."""
    return Log(address=LOGGER, topics=(BURN, topic(address)), data=value.to_be_bytes32())


def delegate_of(code: bytes) -> Address | None:
    """Whom a delegation names; None for other code."""
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
    """Move the value and run the code."""
    state, transient = message.block_env.state, message.tx_env.transient_storage
    frame = frame_of(message)
    begin_transaction(state, transient)
    if message.should_transfer_value and message.value != 0:
        move_ether(state, message.caller, message.current_target, message.value)
        if message.caller != message.current_target:
            frame.logs = (transfer_log(message.caller, message.current_target, message.value),)
    try:
        step_through(frame)
    except ExceptionalHalt as error:
        halt(frame, error)
    except Revert as error:
        frame.error = error
    (rollback_transaction if frame.error else commit_transaction)(state, transient)
    return frame


def halt(frame: Frame, error: Exception) -> None:
    burn(frame)
    frame.output = b""
    frame.error = error


def step_through(frame: Frame) -> None:
    """Run a precompile or code until it stops."""
    message = frame.message
    if message.code_address in PRE_COMPILED_CONTRACTS:
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
    """Run init code, and keep what it returns as code."""
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
    """Check the new code, and pay for its hash and its bytes."""
    code, block = frame.output, frame.block
    if code[:1] == b"\xef":
        raise InvalidContractPrefix
    if len(code) > block.numbers.code_limit:
        raise OutOfGasError
    charge(frame, CODE_WORD * (-(-len(code) // 32)))
    charge_state(frame, block.state_gas(len(code)))


def is_taken(block: Block, address: Address) -> bool:
    """Whether a creation collides there: with code, a nonce, in April with storage too."""
    account = get_account(block.state, address)
    if account.nonce or account.code:
        return True
    return not block.numbers.frozen and address in block.state._storage_tries
