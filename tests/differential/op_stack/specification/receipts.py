"""Receipts in the encoding of the receipts trie, logs, and blooms.

Source: deposits, "Deposit Receipt"; canyon/overview, "Deposit nonce in deposit tx receipt".
"""

from dataclasses import dataclass, field

from .deposits import DEPOSIT_TYPE
from .encoding import keccak256, rlp_encode
from .forks import Fork

BLOOM_BYTES = 256
BLOOM_BITS = 2048
DEPOSIT_RECEIPT_VERSION = 1


@dataclass(frozen=True)
class Log:
    """A log of a contract."""

    address: bytes
    topics: tuple[bytes, ...]
    data: bytes


@dataclass(frozen=True)
class Receipt:
    """The outcome of a transaction. `kind` is the transaction type."""

    kind: int
    status: bool
    cumulative_gas_used: int
    logs: tuple[Log, ...] = ()
    deposit_nonce: int | None = field(default=None)

    def encode(self, fork: Fork) -> bytes:
        """Encodes the receipt for the receipts trie.

        A deposit's receipt has nonce and version since Canyon. Regolith's receipts root omits the
        nonce.
        """
        logs = [(log.address, log.topics, log.data) for log in self.logs]
        fields = [int(self.status), self.cumulative_gas_used, bloom_of(self.logs), logs]
        if self.kind == DEPOSIT_TYPE and fork >= Fork.CANYON:
            assert self.deposit_nonce is not None
            fields += [self.deposit_nonce, DEPOSIT_RECEIPT_VERSION]
        return (bytes([self.kind]) if self.kind else b"") + rlp_encode(fields)


def bloom_of(logs: tuple[Log, ...]) -> bytes:
    """Returns 256 bytes with three bits for each address and topic (Yellow Paper, 4.3.1)."""
    bits = 0
    for log in logs:
        for entry in (log.address, *log.topics):
            digest = keccak256(entry)
            for at in (0, 2, 4):
                bits |= 1 << (int.from_bytes(digest[at : at + 2], "big") % BLOOM_BITS)
    return bits.to_bytes(BLOOM_BYTES, "big")
