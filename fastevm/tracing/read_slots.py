"""The slot that a call reads its answer from: found by changing the slots that it reads."""

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
MAX_SLOTS: Final = 256  # that are tried; a call for a balance reads a few

# The byte of each place holds its number, counted from 1 at the lowest one: what a call returns of
# such a word tells from where in it.
PROBE: Final = int.from_bytes(bytes(range(1, WORD_BYTES + 1)), "little")


class SlotField(Struct, frozen=True):
    """A number in a slot: the owner's 20 bytes, and where in the word it lies, in bits."""

    address: bytes
    slot: int
    shift: int
    width: int

    def written(self, word: int, value: int) -> int:
        """The word with ``value`` in this place; ValueError for a value that does not fit."""
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
    """The place of the number that a call returns, whole bytes wide; None if no slot holds it.

    It may belong to any contract that the call reaches (a proxy, a separate store). A number that
    is computed, such as a share of a total, is found nowhere. Raises TracingError as
    `create_access_list`.
    """
    listed = create_access_list(view, request, gas_cap=gas_cap, timeout=timeout)
    reads = [(entry.address, slot) for entry in listed.access_list for slot in entry.storage_keys]
    for address, slot in reads[:MAX_SLOTS]:
        returned = _returned(view, request, address, slot, gas_cap, timeout)
        place = None if returned is None else _place(returned)
        if place is not None:
            return SlotField(address, slot, *place)
    return None


def _returned(
    view: StateView, request: CallRequest, address: bytes, slot: int, gas_cap: int, timeout: float
) -> int | None:
    """What the call returns when the slot holds the probe; None when it fails."""
    overrides = {address: AccountOverride(state_diff={slot: PROBE})}
    try:
        result = call(view, request, state_overrides=overrides, gas_cap=gas_cap, timeout=timeout)
    except (InvalidTransaction, SimulationError):
        return None
    if not result.success or len(result.output) != WORD_BYTES:
        return None
    return int.from_bytes(result.output, "big")


def _place(returned: int) -> tuple[int, int] | None:
    """Shift and width in bits of the part of the probe that ``returned`` is; None if it is none."""
    first = returned & 0xFF
    width = 8 * ((returned.bit_length() + 7) // 8)
    shift = 8 * (first - 1)
    if not 1 <= first <= WORD_BYTES or shift + width > WORD_BITS:
        return None
    part = (PROBE >> shift) & ((1 << width) - 1)
    return (shift, width) if part == returned else None
