"""Lists the differences between two states, which are printed with the roots of a failed case."""

from collections.abc import Iterator, Mapping
from typing import Any

from fastevm.core.state.layer import Layer

SHOWN = 6  # differences to print; further differences are only counted


def state_difference(expected: Mapping[bytes, Mapping[str, Any]], found: Layer) -> str:
    """Describes the first differences. Returns an empty text if there are none.

    ``expected``: accounts as `Layer.of` takes them.
    """
    lines = list(_differences(expected, found))
    if len(lines) > SHOWN:
        lines[SHOWN:] = [f"and {len(lines) - SHOWN} more"]
    return "".join(f"\n    {line}" for line in lines)


def _differences(expected: Mapping[bytes, Mapping[str, Any]], found: Layer) -> Iterator[str]:
    for address in sorted(set(expected) | set(found.addresses())):
        name = f"0x{address.hex()}"
        account, wanted = found.account(address), expected.get(address)
        if account is None:
            yield f"{name}: missing"
        elif wanted is None:
            yield f"{name}: expected no account, found {account}"
        else:
            yield from _fields(name, wanted, address, found)


def _fields(name: str, wanted: Mapping[str, Any], address: bytes, found: Layer) -> Iterator[str]:
    for field in ("balance", "nonce", "code"):
        want, have = wanted[field], getattr(found, field)(address)
        if want != have:
            yield f"{name}: {field}: expected {_shown(want)}, found {_shown(have)}"
    want, have = wanted["storage"], found.storage_items(address)
    for slot in sorted(set(want) | set(have)):
        if want.get(slot, 0) != have.get(slot, 0):
            values = f"expected {want.get(slot, 0):#x}, found {have.get(slot, 0):#x}"
            yield f"{name}: slot {slot:#x}: {values}"


def _shown(value: int | bytes) -> str:
    return f"0x{value.hex()}" if isinstance(value, bytes) else str(value)
