"""Receipts, and the logs in them, as JSON text."""

from typing import Any, final

from fastevm.core.execution.types import Receipt

@final
class ReceiptWriter:
    """Writes the receipts and logs of one block; ``timestamp`` in Unix seconds, 32-byte hashes.

    ``timestamp_ms``: in Unix milliseconds on chains whose blocks have them, else 0.
    """

    def __new__(
        cls, block_hash: bytes, number: int, timestamp: int, timestamp_ms: int = 0
    ) -> ReceiptWriter: ...
    def receipt(
        self,
        receipt: Receipt,
        transaction: Any,
        index: int,
        first_log: int,
        more: bytes = b"",
    ) -> bytes:
        """The receipt of transaction ``index``, an object; ``first_log`` counts over the block.

        ``more``: the JSON text of further members, without braces.
        """

    def outcome(self, receipt: Receipt, transaction: Any, index: int, first_log: int) -> bytes:
        """The members of the receipt that the execution determined, without braces."""

    def log(
        self,
        log: Any,
        transaction_hash: bytes,
        index: int,
        log_index: int,
        removed: bool = False,
    ) -> bytes:
        """A log of transaction ``index``, mined or not; ``log_index`` counts over the block."""
