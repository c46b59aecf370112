"""Requests to the consensus layer (EIP-7685): their hash, and the deposits from logs (EIP-6110)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256

from fastevm.core.execution.types import Log
from fastevm.core.primitives.keccak import keccak256

DEPOSIT_REQUEST = 0
WITHDRAWAL_REQUEST = 1
CONSOLIDATION_REQUEST = 2
BUILDER_DEPOSIT_REQUEST = 3
BUILDER_EXIT_REQUEST = 4

# The system contracts called at the end of a block, in this order (EIP-7002, 7251, 8282).
QUEUES = (
    (WITHDRAWAL_REQUEST, "WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS"),
    (CONSOLIDATION_REQUEST, "CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS"),
    (BUILDER_DEPOSIT_REQUEST, "BUILDER_DEPOSIT_CONTRACT_ADDRESS"),
    (BUILDER_EXIT_REQUEST, "BUILDER_EXIT_CONTRACT_ADDRESS"),
)

DEPOSIT_TOPIC = keccak256(b"DepositEvent(bytes,bytes,bytes,bytes,bytes)")

# Offset and size of the event's five byte strings in its ABI encoding (EIP-6110).
_DEPOSIT_LAYOUT = ((160, 48), (256, 32), (320, 8), (384, 96), (512, 8))
_DEPOSIT_EVENT_SIZE = 576
_WORD = 32


def requests_hash(requests: Iterable[bytes]) -> bytes:
    """Returns SHA-256 over the SHA-256 of each request, type byte first (EIP-7685)."""
    return sha256(b"".join(sha256(request).digest() for request in requests)).digest()


def deposit_requests(logs: Iterable[Log]) -> bytes:
    """Returns the deposits in the logs of the deposit contract, 192 bytes each, in order
    (EIP-6110).

    Raises ValueError for an event with another layout. Such an event makes the block invalid.
    """
    return b"".join(_deposit(log.data) for log in logs if log.topics[:1] == (DEPOSIT_TOPIC,))


def _deposit(data: bytes) -> bytes:
    if len(data) != _DEPOSIT_EVENT_SIZE:
        raise ValueError(f"a deposit event of {len(data)} bytes, not {_DEPOSIT_EVENT_SIZE}")
    words = [int.from_bytes(data[at : at + _WORD], "big") for at in range(0, len(data), _WORD)]
    parts: list[bytes] = []
    for index, (offset, size) in enumerate(_DEPOSIT_LAYOUT):
        if words[index] != offset:
            raise ValueError(f"field {index} of a deposit event at {words[index]}, not at {offset}")
        if words[offset // _WORD] != size:
            raise ValueError(
                f"field {index} of a deposit event has {words[offset // _WORD]} bytes, not {size}"
            )
        parts.append(data[offset + _WORD : offset + _WORD + size])
    return b"".join(parts)


def collected(outputs: Sequence[tuple[int, bytes]]) -> tuple[bytes, ...]:
    """Returns the requests for (type, data) pairs, except pairs without data (EIP-7685)."""
    return tuple(bytes([kind]) + data for kind, data in outputs if data)
