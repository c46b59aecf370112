"""Reads of the newest state, from the text of a request to the text of its answer."""

from collections.abc import Mapping
from enum import Enum

class Read(Enum):
    """What a method reads: its params are this, then the tag of a block where it is of a state."""

    BLOCK_NUMBER = 0
    CHAIN_ID = 1
    BALANCE = 2
    NONCE = 3
    CODE = 4
    STORAGE = 5

class StateReads:
    """Parses a body, then answers it. Not for several threads at once.

    A body is a JSON-RPC 2.0 request or a batch of at most ``limit``, of ``methods`` alone, each
    with an id, all its params and the tag ``latest`` or ``pending``. The answers are those of the
    methods' handlers; tests compare both.
    """

    wants_pending: bool
    # A nonce of the pending block, which transactions that wait in the pool raise.
    wants_next_nonce: bool
    def __init__(self, methods: Mapping[str, Read], limit: int) -> None: ...
    def read(self, body: bytes) -> bool:
        """Parse a body; False for any other form, and the body is not kept."""

    def answer(
        self, latest: object, pending: object, number: int, chain_id: int, limit: int
    ) -> bytes | None:
        """The answer to the body that was read last, from the layers of both blocks.

        None where it would have more than ``limit`` bytes or there are no layers.
        """

    def counts_by_method(self) -> list[tuple[str, int]]:
        """How many calls of each method the body had that was read last."""
