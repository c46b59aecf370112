"""Decodes raw transactions before they are submitted, several at a time."""

from collections.abc import Sequence
from itertools import islice

from fastevm.core.execution.transaction.senders import recover_senders
from fastevm.core.execution.transaction.sidecar import BLOB_TX_TYPE, BlobSidecar, decode_pooled
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.errors import TransactionDecodeError

MAX_PREDECODED_AT_ONCE = 64  # about a millisecond of work per call
MAX_PREDECODED = 2_048  # cached transactions that are not yet submitted; the oldest are dropped


class PredecodedTransactions:
    """A thread-safe cache of decoded transactions that will be submitted soon.

    Recovering eight senders together takes a quarter of the time per signature. Only the encoding
    is checked. A predecoded transaction need not be submitted.
    """

    def __init__(self) -> None:
        self._decoded: dict[bytes, Transaction] = {}

    def __len__(self) -> int:
        return len(self._decoded)

    def predecode(self, raws: Sequence[bytes]) -> None:
        """Decodes these canonical bytes, at most MAX_PREDECODED_AT_ONCE.

        Skips bytes that are no transaction.
        """
        decoded: dict[bytes, Transaction] = {}
        for raw in raws[:MAX_PREDECODED_AT_ONCE]:
            if raw[:1] == bytes([BLOB_TX_TYPE]):
                continue  # checking its blobs takes much longer than recovering its signer
            try:
                decoded[raw] = Transaction.decode(raw)
            except TransactionDecodeError:
                continue  # submitting it reports the error
        recover_senders(decoded.values(), threads=1)
        self._decoded |= decoded
        for raw in list(islice(self._decoded, max(0, len(self._decoded) - MAX_PREDECODED))):
            self._decoded.pop(raw, None)

    def take(self, raw: bytes) -> tuple[Transaction, BlobSidecar | None]:
        """Returns the transaction with these bytes, and its sidecar.

        Decodes the transaction if it is not cached.

        Raises TransactionDecodeError for bytes that are no transaction.
        """
        transaction = self._decoded.pop(raw, None)
        return decode_pooled(raw) if transaction is None else (transaction, None)
