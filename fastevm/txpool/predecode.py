"""Transactions that are about to be submitted: decoded, and their senders recovered together."""

from collections.abc import Sequence
from itertools import islice

from fastevm.errors import TransactionDecodeError
from fastevm.execution.senders import recover_senders
from fastevm.execution.sidecar import BLOB_TX_TYPE, BlobSidecar, decode_pooled
from fastevm.execution.transaction import Transaction

MOST_FORESEEN = 64  # transactions at once: about a millisecond
MOST_KEPT = 2_048  # of those that have not come yet; the oldest go


class Foreseen:
    """The newest transactions of which it was said that they would come.

    Eight signatures side by side take a quarter of the time that each takes alone, but only who
    sees many transactions at once can put them side by side. What is foreseen is not checked, and
    may come or not. Every method may be called from any thread.
    """

    def __init__(self) -> None:
        self._decoded: dict[bytes, Transaction] = {}

    def __len__(self) -> int:
        return len(self._decoded)

    def expect(self, raws: Sequence[bytes]) -> None:
        """Prepare these canonical bytes, MOST_FORESEEN at most; what is no transaction is left."""
        decoded: dict[bytes, Transaction] = {}
        for raw in raws[:MOST_FORESEEN]:
            if raw[:1] == bytes([BLOB_TX_TYPE]):
                continue  # comes with its blobs, and takes much longer than its signature
            try:
                decoded[raw] = Transaction.decode(raw)
            except TransactionDecodeError:
                continue  # said when it is submitted
        recover_senders(decoded.values(), threads=1)
        self._decoded |= decoded
        for raw in list(islice(self._decoded, max(0, len(self._decoded) - MOST_KEPT))):
            self._decoded.pop(raw, None)

    def take(self, raw: bytes) -> tuple[Transaction, BlobSidecar | None]:
        """The transaction of these bytes and its sidecar, decoded now if it was not foreseen.

        Raises TransactionDecodeError.
        """
        transaction = self._decoded.pop(raw, None)
        return decode_pooled(raw) if transaction is None else (transaction, None)
