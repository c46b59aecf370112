"""Encodes and decodes ``mix_hash`` and ``extra_data`` of Arbitrum's block headers.

``mix_hash`` contains the number of messages to L1 (8 bytes), the L1 block number (8), the ArbOS
version (8), a zero byte, a byte that is 1 if tips are collected, and six zero bytes. ``extra_data``
is the root of the messages to L1. Source: Arbitrum's go-ethereum, ``core/types/block.go``.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from fastevm.core.execution.types import ZERO_ADDRESS, Header
from fastevm.core.primitives.replace import replace

GAS_LIMIT: Final = 1 << 50
DIFFICULTY: Final = 1
ROOT_SIZE: Final = 32
SEQUENCER: Final = bytes.fromhex("a4b000000000000000000073657175656e636572")


class HeaderInfo(NamedTuple):
    """The decoded ``mix_hash``. ``l1_number``: L1 block number, which opcode NUMBER returns."""

    send_count: int
    l1_number: int
    arbos_version: int
    collects_tips: bool

    @classmethod
    def of(cls, mix_hash: bytes) -> HeaderInfo:
        """Decodes a ``mix_hash`` of 32 bytes."""
        sends, l1_number, version = (
            int.from_bytes(mix_hash[at : at + 8], "big") for at in (0, 8, 16)
        )
        return cls(sends, l1_number, version, mix_hash[25] != 0)

    def mix_hash(self) -> bytes:
        """Encodes the values as a ``mix_hash`` of 32 bytes."""
        numbers = (self.send_count, self.l1_number, self.arbos_version)
        return b"".join(number.to_bytes(8, "big") for number in numbers) + bytes(
            [0, self.collects_tips, 0, 0, 0, 0, 0, 0]
        )


def is_arbitrum(header: Header) -> bool:
    """Returns whether difficulty, gas limit and extra data have the form of Arbitrum's headers."""
    return (
        header.difficulty == DIFFICULTY
        and header.gas_limit == GAS_LIMIT
        and len(header.extra_data) == ROOT_SIZE
    )


def child_header(draft: Header, parent: Header) -> Header:
    """Completes ``draft`` with the fields that a child of ``parent`` has on Arbitrum.

    Copies the parent's ``extra_data`` and ``mix_hash``, with the L1 block number increased by one.
    The coinbase is the sequencer unless the draft has one.
    """
    info = HeaderInfo.of(parent.mix_hash)
    return replace(
        draft,
        coinbase=SEQUENCER if draft.coinbase == ZERO_ADDRESS else draft.coinbase,
        difficulty=DIFFICULTY,
        extra_data=parent.extra_data,
        mix_hash=info._replace(l1_number=info.l1_number + 1).mix_hash(),
        nonce=parent.nonce,
    )
