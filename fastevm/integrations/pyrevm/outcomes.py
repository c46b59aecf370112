"""Results, accounts and checkpoints with pyrevm's interface."""

from __future__ import annotations

from typing import Final, NamedTuple

from msgspec import Struct

from fastevm.core.execution.types import Log as PackedLog
from fastevm.core.primitives.hex import checksum_address
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.spec.opcodes import OPCODES

EMPTY_CODE_HASH: Final = keccak256(b"")

# Error of a result -> revm's name.
HALTS: Final = {
    "out of gas": "OutOfGas(Basic)",
    "stack underflow": "StackUnderflow",
    "stack limit reached": "StackOverflow",
    "invalid jump destination": "InvalidJump",
    "write protection": "StateChangeDuringStaticCall",
    "return data out of bounds": "OutOfOffset",
    "contract address collision": "CreateCollision",
    "max code size exceeded": "CreateContractSizeLimit",
    "max initcode size exceeded": "CreateInitCodeSizeLimit",
    "contract creation code storage out of gas": "OutOfGas(Basic)",
    "invalid code: must not begin with 0xef": "CreateContractSizeLimit",
    "invalid input to a precompiled contract": "PrecompileError",
    "nonce uint64 overflow": "NonceOverflow",
    "max call depth exceeded": "CallTooDeep",
    "insufficient balance for transfer": "OutOfFunds",
}
KNOWN_BYTES: Final = frozenset(op.value for op in OPCODES)
INVALID: Final = 0xFE
CALL: Final = 0xF1


def halt_reason(error: str, opcode: int) -> str:
    """Returns revm's name of a halt. ``opcode``: the byte of the opcode that halted."""
    if error == "invalid opcode":
        if opcode == INVALID:
            return "InvalidFEOpcode"
        return "NotActivated" if opcode in KNOWN_BYTES else "OpcodeNotFound"
    if error == "write protection" and opcode == CALL:
        return "CallNotAllowedInsideStatic"
    return HALTS[error]


class Log:
    """A log: ``address`` with its checksum, ``topics`` as hex, ``data`` as (topics, data)."""

    __slots__ = ("_log",)

    def __init__(self, log: PackedLog) -> None:
        self._log = log

    @property
    def address(self) -> str:
        return checksum_address(self._log.address)

    @property
    def topics(self) -> list[str]:
        return ["0x" + topic.hex() for topic in self._log.topics]

    @property
    def data(self) -> tuple[list[bytes], bytes]:
        return list(self._log.topics), self._log.data

    def __repr__(self) -> str:
        return f"Log(address={self.address}, topics={self.topics}, data=0x{self._log.data.hex()})"


class ExecutionResult(Struct, frozen=True):
    """The outcome of the last message. Gas includes intrinsic gas."""

    is_success: bool
    is_halt: bool
    reason: str
    gas_used: int
    gas_refunded: int
    logs: list[Log]


class JournalCheckpoint(NamedTuple):
    """A checkpoint to revert to."""

    log_i: int
    journal_i: int


class AccountInfo:
    """An account without storage. ``code`` is one zero byte for an account without code."""

    __slots__ = ("balance", "code", "code_hash", "nonce")

    def __init__(
        self,
        balance: int | None = None,
        nonce: int = 0,
        code_hash: bytes | None = None,
        code: bytes | None = None,
    ) -> None:
        self.balance = balance or 0
        self.nonce = nonce
        self.code = None if code is None else bytes(code)
        given = code_hash if code_hash is not None and len(code_hash) == 32 else None
        self.code_hash = given or (EMPTY_CODE_HASH if code is None else keccak256(code))

    def __repr__(self) -> str:
        size = len(self.code or b"")
        return f"AccountInfo(balance={self.balance}, nonce={self.nonce}, {size} bytes of code)"
