"""The frames of a run as values: calls, creations and self-destructions, in the order of entry."""

from typing import Final, NamedTuple

from msgspec import Struct, field

CREATIONS: Final = frozenset(("CREATE", "CREATE2"))
DESTRUCTION: Final = "SELFDESTRUCT"


class CallFrame(NamedTuple):
    """One frame of a transaction.

    ``kind`` is the op that began it, ``depth`` is 0 for the top frame, ``target`` the account that
    was called or created, or that gets the balance of a self-destruction. ``gas`` and ``gas_used``
    are those of the frame alone: those of the top frame lack the intrinsic gas, and refunds are not
    subtracted. ``error``: why it failed, in go-ethereum's words; None if it did not.
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
        """Whether it is a creation."""
        return self.kind in CREATIONS


class FrameAccess(Struct):
    """What a frame accesses, by the rules of ERC-7562.

    ``reads``: the values of slots that were read before they were written; ``writes`` and those of
    transient storage: how often. ``external``: accounts whose code was asked for, but to see
    whether there is any. ``sizes``: of the code of accounts that were called or looked at, and the
    op that did. ``opcodes``: how often each op was executed.
    """

    reads: dict[int, int] = field(default_factory=dict)
    writes: dict[int, int] = field(default_factory=dict)
    transient_reads: dict[int, int] = field(default_factory=dict)
    transient_writes: dict[int, int] = field(default_factory=dict)
    external: list[bytes] = field(default_factory=list)
    sizes: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    opcodes: dict[int, int] = field(default_factory=dict)
