"""Implements new opcodes, and opcodes that access accounts or slots, and installs them in EELS."""

import sys
from functools import partial

from ethereum.crypto.hash import keccak256
from ethereum.forks.bpo2.fork_types import EMPTY_ACCOUNT
from ethereum.forks.bpo2.state import get_storage, get_storage_original, set_storage
from ethereum.forks.bpo2.utils.address import to_address_masked
from ethereum.forks.bpo2.vm.exceptions import (
    InvalidOpcode,
    OutOfGasError,
    StackUnderflowError,
    WriteInStaticContext,
)
from ethereum.forks.bpo2.vm.gas import calculate_gas_extend_memory
from ethereum.forks.bpo2.vm.instructions import op_implementation
from ethereum.forks.bpo2.vm.memory import buffer_read, memory_write
from ethereum.forks.bpo2.vm.stack import pop, push
from ethereum_types.numeric import U256, Uint

from . import calls, frames
from .calls import access, access_cost
from .gas import Frame, charge, charge_state, give_back, need
from .numbers import COLD_SLOT, SENTRY, WARM
from .reach import reach

BASE, VERY_LOW, COPY = 2, 3, 3


# --- accounts ---


def balance(frame: Frame) -> None:
    address = to_address_masked(pop(frame.stack))
    charge(frame, access_cost(frame, address))
    push(frame.stack, access(frame, address).balance)
    frame.pc += Uint(1)


def extcodesize(frame: Frame) -> None:
    address = to_address_masked(pop(frame.stack))
    charge(frame, access_cost(frame, address) + frame.block.numbers.code_reading)
    push(frame.stack, U256(len(access(frame, address).code)))
    frame.pc += Uint(1)


def extcodecopy(frame: Frame) -> None:
    address = to_address_masked(pop(frame.stack))
    memory_at, code_at, size = (pop(frame.stack) for _ in range(3))
    extension = calculate_gas_extend_memory(frame.memory, [(memory_at, size)])
    words = -(-int(size) // 32)
    cost = access_cost(frame, address) + frame.block.numbers.code_reading
    charge(frame, cost + COPY * words + int(extension.cost))
    frame.memory += b"\x00" * int(extension.expand_by)
    memory_write(frame.memory, memory_at, buffer_read(access(frame, address).code, code_at, size))
    frame.pc += Uint(1)


def extcodehash(frame: Frame) -> None:
    address = to_address_masked(pop(frame.stack))
    charge(frame, access_cost(frame, address))
    account = access(frame, address)
    is_empty = account == EMPTY_ACCOUNT
    push(frame.stack, U256(0) if is_empty else U256.from_be_bytes(keccak256(account.code)))
    frame.pc += Uint(1)


# --- slots ---


def slot_cost(frame: Frame, key: bytes) -> int:
    is_warm = (frame.message.current_target, key) in frame.accessed_storage_keys
    return WARM if is_warm else COLD_SLOT


def read_slot(frame: Frame, key: bytes) -> None:
    frame.accessed_storage_keys.add((frame.message.current_target, key))
    frame.block.recorder.read(frame.message.current_target, key)


def sload(frame: Frame) -> None:
    key = pop(frame.stack).to_be_bytes32()
    charge(frame, slot_cost(frame, key))
    read_slot(frame, key)
    push(frame.stack, get_storage(frame.block.state, frame.message.current_target, key))
    frame.pc += Uint(1)


def sstore(frame: Frame) -> None:
    if frame.message.is_static:
        raise WriteInStaticContext
    key, new = pop(frame.stack).to_be_bytes32(), pop(frame.stack)
    if int(frame.gas_left) <= SENTRY:
        reach("slots: gas below the sentry")
        raise OutOfGasError
    block, owner = frame.block, frame.message.current_target
    numbers = block.numbers
    slot = slot_cost(frame, key)
    if numbers.frozen:
        need(frame, slot)
    read_slot(frame, key)
    original = get_storage_original(block.state, owner, key)
    current = get_storage(block.state, owner, key)
    is_first_change = current == original and new != current
    if numbers.frozen:
        cost = slot + (numbers.slot_write if is_first_change else 0)
    else:
        cost = COLD_SLOT if slot == COLD_SLOT else 0
        cost += numbers.slot_write if is_first_change else WARM
    if new != current:
        count_refund(frame, int(original), int(current), int(new))
    charge(frame, cost)
    reach("slots: first change", is_first_change and original)
    if is_first_change and not original:
        charge_state(frame, block.slot_gas)
        reach("slots: new")
        reach("slots: new within a call", frame.message.depth)
    set_storage(block.state, owner, key, new)
    block.recorder.write(owner, key)
    frame.pc += Uint(1)


def count_refund(frame: Frame, original: int, current: int, new: int) -> None:
    """Adjusts the refund counter for a change of a slot. The adjustment may be negative."""
    numbers = frame.block.numbers
    if original and current and not new:
        reach("slots: cleared")
        frame.refund_counter += numbers.clear_refund
    if original and not current:
        reach("slots: no longer cleared")
        frame.refund_counter -= numbers.clear_refund
    if new == original:
        reach("slots: restored to a value" if original else "slots: restored to zero")
        frame.refund_counter += numbers.restore_refund
        if not original:
            give_back(frame, frame.block.slot_gas)


def tstore(frame: Frame) -> None:
    if frame.message.is_static:
        raise WriteInStaticContext
    op_implementation_of["TSTORE"](frame)


# --- new opcodes ---


def slotnum(frame: Frame) -> None:
    charge(frame, BASE)
    reach("opcodes: SLOTNUM")
    push(frame.stack, U256(frame.block.slot_number))
    frame.pc += Uint(1)


def immediate(frame: Frame) -> int:
    """Returns the immediate byte after the opcode, or 0 at the end of the code."""
    at = int(frame.pc) + 1
    reach("opcodes: immediate behind the end", at >= len(frame.code))
    return frame.code[at] if at < len(frame.code) else 0


def depth_of(byte: int) -> int:
    """Returns the stack position that DUPN and SWAPN encode."""
    reach("opcodes: immediate refused", 90 < byte < 128)
    if 90 < byte < 128:
        raise InvalidOpcode(byte)
    return byte + 145 if byte <= 90 else byte - 111


def pair_of(byte: int) -> tuple[int, int]:
    """Returns the two positions below the top that EXCHANGE encodes."""
    reach("opcodes: immediate refused", 81 < byte < 128)
    if 81 < byte < 128:
        raise InvalidOpcode(byte)
    q, t = divmod(byte ^ 0x8F, 16)
    return (q + 1, t + 1) if q < t else (t + 1, 29 - q)


def require(frame: Frame, items: int) -> None:
    if len(frame.stack) < items:
        reach("opcodes: stack too short for an immediate")
        raise StackUnderflowError


def exchange_items(frame: Frame, item: int, other: int) -> None:
    """Exchanges the items at two positions; 1 is the top."""
    stack = frame.stack
    require(frame, max(item, other))
    stack[-item], stack[-other] = stack[-other], stack[-item]
    frame.pc += Uint(2)


def dupn(frame: Frame) -> None:
    charge(frame, VERY_LOW)
    n = depth_of(immediate(frame))
    require(frame, n)
    push(frame.stack, frame.stack[-n])
    reach("opcodes: DUPN")
    frame.pc += Uint(2)


def swapn(frame: Frame) -> None:
    charge(frame, VERY_LOW)
    exchange_items(frame, 1, depth_of(immediate(frame)) + 1)
    reach("opcodes: SWAPN")


def exchange(frame: Frame) -> None:
    charge(frame, VERY_LOW)
    n, m = pair_of(immediate(frame))
    exchange_items(frame, n + 1, m + 1)
    reach("opcodes: EXCHANGE")


def jump(frame: Frame, mnemonic: str) -> None:
    """Executes JUMP or JUMPI.

    The immediate byte of DUPN, SWAPN or EXCHANGE may be a jump target.
    """
    op_implementation_of[mnemonic](frame)
    at = int(frame.pc)
    is_immediate = 0 < at < len(frame.code) and frame.code[at - 1] in (0xE6, 0xE7, 0xE8)
    reach("opcodes: jump to the byte of an immediate", is_immediate)


op_implementation_of = {op.name: run for op, run in op_implementation.items()}
OPERATIONS = {op.value: run for op, run in op_implementation.items()}
OPERATIONS |= calls.OPERATIONS
OPERATIONS |= {
    0x31: balance, 0x3B: extcodesize, 0x3C: extcodecopy, 0x3F: extcodehash, 0x4B: slotnum,
    0x54: sload, 0x55: sstore, 0x56: partial(jump, mnemonic="JUMP"),
    0x57: partial(jump, mnemonic="JUMPI"), 0x5D: tstore, 0xE6: dupn, 0xE7: swapn, 0xE8: exchange,
}  # fmt: skip


def install() -> None:
    """Makes the specification's opcodes and precompiles charge gas by these rules."""
    frames.OPERATIONS.update(OPERATIONS)
    for name, module in list(sys.modules.items()):
        if name.startswith("ethereum.forks.bpo2.vm") and hasattr(module, "charge_gas"):
            module.charge_gas = charge
