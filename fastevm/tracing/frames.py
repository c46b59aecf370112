"""Frames as Python values: calls, creations and self-destructions, in order of entry."""

from typing import Final, NamedTuple

from msgspec import Struct, field

CREATIONS: Final = frozenset(("CREATE", "CREATE2"))
DESTRUCTION: Final = "SELFDESTRUCT"


class CallFrame(NamedTuple):
    """One frame of a transaction.

    - ``kind``: the opcode that started the frame
    - ``depth``: 0 for the top frame
    - ``target``: the account called or created, or the beneficiary of a self-destruction
    - ``gas`` and ``gas_used``: gas of the frame; for the top frame, without intrinsic gas and
      before refunds
    - ``error``: go-ethereum's text for the reason of a failure, or None
    """

    kind: str
    depth: int
    caller: bytes
    target: bytes
    value: int
    gas: int
    gas_used: int
    input: bytes
    output: bytes
    error: str | None
    reverted: bool

    @property
    def creates(self) -> bool:
        """Whether the frame is a creation."""
        return self.kind in CREATIONS


class FrameAccess(Struct):
    """The accesses of a frame that the rules of ERC-7562 concern.

    - ``reads``: slots that were read before they were written, with their values
    - ``writes``, ``transient_reads``, ``transient_writes``: counts by slot
    - ``external``: accounts whose code was read for another purpose than an existence check
    - ``sizes``: code sizes of accounts called or inspected, with the opcode
    - ``opcodes``: number of executions of each opcode
    """

    reads: dict[int, int] = field(default_factory=dict)
    writes: dict[int, int] = field(default_factory=dict)
    transient_reads: dict[int, int] = field(default_factory=dict)
    transient_writes: dict[int, int] = field(default_factory=dict)
    external: list[bytes] = field(default_factory=list)
    sizes: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    opcodes: dict[int, int] = field(default_factory=dict)
