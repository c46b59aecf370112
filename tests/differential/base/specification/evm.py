"""Implements the opcodes of programs that call native contracts, with the gas costs of Osaka."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from eth_hash.auto import keccak

from .journal import STIPEND, Frame, Journal, OutOfGas, Revert
from .machine import FIXED, Result, is_native
from .machine import call as native_call

DELEGATION = bytes.fromhex("ef0100")
CALL, CALLCODE, DELEGATECALL, STATICCALL = 0xF1, 0xF2, 0xF4, 0xFA
COLD_ACCOUNT, WARM_ACCOUNT = 2600, 100


class Halted(Exception):
    """An exceptional halt: the frame loses its gas."""


@dataclass
class Environment:
    journal: Journal
    fork: int
    chain_id: int
    now: int


@dataclass
class Message:
    kind: int
    caller: bytes
    address: bytes  # the account whose storage and balance the code uses
    code_address: bytes
    value: int  # the transferred value; 0 for DELEGATECALL
    data: bytes
    gas: int
    is_static: bool


def run_message(env: Environment, m: Message) -> Result:
    """Runs a message call to any address. The caller has checked value and access gas."""
    if is_native(m.code_address):
        return native_call(
            env.journal, fork=env.fork, chain_id=env.chain_id, now=env.now, caller=m.caller,
            address=m.code_address, data=m.data, gas=m.gas, value=m.value, is_static=m.is_static,
            is_direct=m.kind in (CALL, STATICCALL),
        )  # fmt: skip
    mark = env.journal.mark()
    if m.kind == CALL and m.value:
        env.journal.move(m.caller, m.address, m.value)
    code = env.journal.codes.get(m.code_address, b"")
    if code.startswith(DELEGATION):
        delegate = code[len(DELEGATION) :]
        code = b"" if delegate in FIXED else env.journal.codes.get(delegate, b"")
    frame = Frame(env.journal, env.fork, env.chain_id, env.now, m.caller, m.gas, m.is_static)
    try:
        output = Program(env, m, frame, code).run()
    except Revert as refused:
        env.journal.revert(mark)
        return Result(False, refused.output, frame.gas)
    except (OutOfGas, Halted):
        env.journal.revert(mark)
        return Result(False, b"", 0, ran_out=True)
    return Result(True, output, frame.gas)


@dataclass
class Program:
    env: Environment
    message: Message
    frame: Frame
    code: bytes
    stack: list[int] = field(default_factory=list)
    memory: bytearray = field(default_factory=bytearray)
    returned: bytes = b""
    at: int = 0

    def run(self) -> bytes:
        while self.at < len(self.code):
            opcode = self.code[self.at]
            self.at += 1
            if opcode == 0x00:
                return b""
            if opcode in (0xF3, 0xFD):
                output = self.take_memory(self.pop(), self.pop())
                if opcode == 0xFD:
                    raise Revert(output)
                return output
            self.step(opcode)
        return b""

    def pop(self) -> int:
        return self.stack.pop()

    def expand(self, start: int, size: int) -> None:
        if not size:
            return
        before, after = len(self.memory) // 32, (start + size + 31) // 32
        if after > before:
            self.frame.charge(memory_gas(after) - memory_gas(before))
            self.memory.extend(bytes(32 * (after - before)))

    def take_memory(self, start: int, size: int) -> bytes:
        self.expand(start, size)
        return bytes(self.memory[start : start + size]) if size else b""

    def put_memory(self, start: int, data: bytes) -> None:
        self.memory[start : start + len(data)] = data

    def step(self, opcode: int) -> None:
        if 0x60 <= opcode <= 0x7F:
            self.frame.charge(3)
            size = opcode - 0x5F
            self.stack.append(int.from_bytes(self.code[self.at : self.at + size], "big"))
            self.at += size
        elif opcode in (CALL, CALLCODE, DELEGATECALL, STATICCALL):
            self.call(opcode)
        else:
            operation = OPERATIONS.get(opcode)
            if operation is None:
                raise Halted
            operation(self)

    def copy(self, source: bytes, *, checked: bool) -> None:
        to, start, size = self.pop(), self.pop(), self.pop()
        self.frame.charge(3 + 3 * ((size + 31) // 32))
        if checked and start + size > len(source):
            raise Halted
        self.expand(to, size)
        self.put_memory(to, source[start : start + size].ljust(size, b"\0"))

    def account(self) -> bytes:
        address = self.pop().to_bytes(20, "big")
        self.frame.account(address)
        return address

    def code_hash(self) -> None:
        address = self.account()
        j = self.env.journal
        code = j.codes.get(address, b"")
        exists = bool(code) or j.balances.get(address, 0) or j.nonces.get(address, 0)
        self.stack.append(int.from_bytes(keccak(code), "big") if exists else 0)

    def code_size(self) -> None:
        self.stack.append(len(self.env.journal.codes.get(self.account(), b"")))

    def log(self) -> None:
        if self.frame.is_static:
            raise Halted
        data = self.take_memory(self.pop(), self.pop())
        self.frame.log(self.message.address, (), data)

    def store(self) -> None:
        if self.frame.is_static:
            raise Halted
        self.frame.store(self.message.address, self.pop(), self.pop())

    def call(self, opcode: int) -> None:
        requested, address = self.pop(), self.pop().to_bytes(20, "big")
        value = self.pop() if opcode in (CALL, CALLCODE) else 0
        start, size, out_start, out_size = (self.pop() for _ in range(4))
        self.expand(start, size)
        self.expand(out_start, out_size)
        if value and opcode == CALL and self.frame.is_static:
            raise Halted
        self.pay_access(address, value, opcode)
        gas = min(requested, self.frame.gas - self.frame.gas // 64)
        self.frame.charge(gas)
        gas += STIPEND if value else 0
        here, m = self.message.address, self.message
        if value > self.env.journal.balances.get(here, 0):
            self.frame.gas += gas
            self.returned = b""
            self.stack.append(0)
            return
        own = opcode in (CALLCODE, DELEGATECALL)
        result = run_message(
            self.env,
            Message(
                opcode, m.caller if opcode == DELEGATECALL else here, here if own else address,
                address, value, self.take_memory(start, size), gas,
                m.is_static or opcode == STATICCALL,
            ),
        )  # fmt: skip
        self.frame.gas += result.gas_left
        self.returned = result.output
        self.put_memory(out_start, result.output[:out_size])
        self.stack.append(int(result.success))

    def pay_access(self, address: bytes, value: int, opcode: int) -> None:
        j = self.env.journal
        code = self.frame.account(address)
        if code.startswith(DELEGATION):
            self.frame.account(code[len(DELEGATION) :])
        if value:
            self.frame.charge(9000)
            is_empty = not (code or j.balances.get(address, 0) or j.nonces.get(address, 0))
            if opcode == CALL and is_empty:
                self.frame.charge(25000)


def memory_gas(words: int) -> int:
    return 3 * words + words * words // 512


def charged(gas: int, action: Callable[[Program], None]) -> Callable[[Program], None]:
    def run(p: Program) -> None:
        p.frame.charge(gas)
        action(p)

    return run


def store_word(p: Program) -> None:
    start, value = p.pop(), p.pop()
    p.expand(start, 32)
    p.put_memory(start, value.to_bytes(32, "big"))


OPERATIONS: dict[int, Callable[[Program], None]] = {
    0x39: lambda p: p.copy(p.code, checked=False),
    0x3B: lambda p: p.code_size(),
    0x3D: charged(2, lambda p: p.stack.append(len(p.returned))),
    0x3E: lambda p: p.copy(p.returned, checked=True),
    0x3F: lambda p: p.code_hash(),
    0x50: charged(2, lambda p: p.stack.clear() if len(p.stack) == 1 else p.stack.__delitem__(-1)),
    0x52: charged(3, store_word),
    0x54: lambda p: p.stack.append(p.frame.load(p.message.address, p.pop())),
    0x55: lambda p: p.store(),
    0x5A: charged(2, lambda p: p.stack.append(p.frame.gas)),
    0xA0: lambda p: p.log(),
}
