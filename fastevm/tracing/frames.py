"""The frames of a run as values: calls, creations and self-destructions, in the order of entry."""

from typing import Final, NamedTuple

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
