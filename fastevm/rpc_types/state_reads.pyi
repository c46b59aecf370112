"""Answers reads of the newest state, from request text to answer text."""

from collections.abc import Mapping
from enum import Enum

class Read(Enum):
    """The value that a method reads.

    The params of the method locate the value (address and slot). A block tag follows if the value
    is part of a state.
    """

    BLOCK_NUMBER = 0
    CHAIN_ID = 1
    BALANCE = 2
    NONCE = 3
    CODE = 4
    STORAGE = 5

class StateReads:
    """Parses a request body, then answers it. Only one thread may use an object at a time.

    A body is a JSON-RPC 2.0 request or a batch of at most ``limit`` requests. Each request calls
    one of ``methods`` and has an id, all params and the tag ``latest`` or ``pending``. The answers
    equal those of the methods' handlers; tests compare both.
    """

    wants_pending: bool
    # The body asks for a nonce in the pending block, which depends on transactions in the pool.
    wants_next_nonce: bool
    def __init__(self, methods: Mapping[str, Read], limit: int) -> None: ...
    def read(self, body: bytes) -> bool:
        """Parses a body for `answer`. Returns False if the body has any other form."""

    def answer(
        self, latest: object, pending: object, number: int, chain_id: int, limit: int
    ) -> bytes | None:
        """Returns the answer to the body that `read` parsed last.

        ``latest`` and ``pending`` are the states of these blocks. ``number`` is the number of the
        latest block. Returns None if the answer would exceed ``limit`` bytes, if a state is not a
        Layer, or if a value of a forked state is not fetched yet.
        """

    def counts_by_method(self) -> list[tuple[str, int]]:
        """Returns how many calls of each method the last body had."""
