"""Receipts, and the logs in them, as JSON text."""

from typing import Any, final

from fastevm.core.execution.types import Receipt

@final
class ReceiptWriter:
    """Writes the receipts and logs of a block. Hashes have 32 bytes.

    ``timestamp``: the block's timestamp in Unix seconds. ``timestamp_ms``: the timestamp in Unix
    milliseconds if the chain's blocks have milliseconds, else 0.
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
        """Returns the receipt of transaction ``index`` as a JSON object.

        ``first_log``: the index of the receipt's first log in the block. ``more``: JSON text of
        further members, without braces.
        """

    def outcome(self, receipt: Receipt, transaction: Any, index: int, first_log: int) -> bytes:
        """Returns the members of a receipt that the execution determined, without braces."""

    def log(
        self,
        log: Any,
        transaction_hash: bytes,
        index: int,
        log_index: int,
        removed: bool = False,
    ) -> bytes:
        """Returns a log of transaction ``index``. ``log_index``: its index in the block."""
