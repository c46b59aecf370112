"""Finds the slot that holds the result of a call by changing the slots that the call reads."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from fastevm.errors import InvalidTransaction
from fastevm.simulate import (
    DEFAULT_GAS_CAP,
    DEFAULT_TIMEOUT,
    AccountOverride,
    CallRequest,
    SimulationError,
    StateView,
    call,
)
from fastevm.tracing.access_list import create_access_list

WORD_BYTES: Final = 32
WORD_BITS: Final = 256
MAX_SLOTS: Final = 256  # maximum number of slots to try; a balance call reads a few

# A word in which each byte is its own position, from 1 for the lowest byte. So the returned part of
# it shows where in the word the number is.
PROBE: Final = int.from_bytes(bytes(range(1, WORD_BYTES + 1)), "little")


class SlotField(Struct, frozen=True):
    """A number in a slot: the contract's 20-byte address, the slot, and the bits within the
    word.
    """

    address: bytes
    slot: int
    shift: int
    width: int

    def written(self, word: int, value: int) -> int:
        """Returns the word with ``value`` in this field.

        Raises ValueError if ``value`` does not fit.
        """
        if value >> self.width:
            raise ValueError(f"{value} does not fit into the {self.width} bits of the slot")
        mask = ((1 << self.width) - 1) << self.shift
        return (word & ~mask) | (value << self.shift)


def find_slot(
    view: StateView,
    request: CallRequest,
    *,
    gas_cap: int = DEFAULT_GAS_CAP,
    timeout: float = DEFAULT_TIMEOUT,
) -> SlotField | None:
    """Returns the part of a slot that holds the number that a call returns, or None.

    The part consists of whole bytes. The slot may belong to any contract that the call reaches,
    such as a proxy or a separate store. A computed number, such as a share of a total, cannot be
    found. Raises TracingError like `create_access_list`.
    """
    listed = create_access_list(view, request, gas_cap=gas_cap, timeout=timeout)
    reads = [(entry.address, slot) for entry in listed.access_list for slot in entry.storage_keys]
    for address, slot in reads[:MAX_SLOTS]:
        returned = _returned(view, request, address, slot, gas_cap, timeout)
        bits = None if returned is None else _bits_in_probe(returned)
        if bits is not None:
            return SlotField(address, slot, *bits)
    return None


def _returned(
    view: StateView, request: CallRequest, address: bytes, slot: int, gas_cap: int, timeout: float
) -> int | None:
    """Returns the result of the call if the slot holds the probe, or None if the call fails."""
    overrides = {address: AccountOverride(state_diff={slot: PROBE})}
    try:
        result = call(view, request, state_overrides=overrides, gas_cap=gas_cap, timeout=timeout)
    except (InvalidTransaction, SimulationError):
        return None
    if not result.success or len(result.output) != WORD_BYTES:
        return None
    return int.from_bytes(result.output, "big")


def _bits_in_probe(returned: int) -> tuple[int, int] | None:
    """Returns shift and width in bits of ``returned`` within the probe, or None."""
    first = returned & 0xFF
    width = 8 * ((returned.bit_length() + 7) // 8)
    shift = 8 * (first - 1)
    if not 1 <= first <= WORD_BYTES or shift + width > WORD_BITS:
        return None
    part = (PROBE >> shift) & ((1 << width) - 1)
    return (shift, width) if part == returned else None
