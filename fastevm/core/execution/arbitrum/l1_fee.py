"""What a transaction of Arbitrum pays for its data on L1, before it is signed.

The fee is a number of units times a price in the storage of ArbOS; a unit is a sixteenth of a byte
of the compressed transaction. Source: Nitro, ``arbos/l1pricing/l1pricing.go`` and
``arbos/tx_processor.go``.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any, Final

from fastevm.core.native.arbitrum.storage import STATE_ADDRESS, slot
from fastevm.core.primitives import rlp
from fastevm.core.primitives.keccak import keccak256

UNITS_OF_A_BYTE: Final = 16
BROTLI_WINDOW: Final = 22
DYNAMIC_FEE: Final = b"\x02"
# Values of the members that a request does not have. They do not compress, as real ones.
NONCE: Final = 12_125_040_168_863_184_969
TIP: Final = 968_523_046
FEE_CAP: Final = 4_054_464_639
GAS: Final = 3_091_729_570
V: Final = 126_483
R: Final = keccak256(b"R")
S: Final = keccak256(b"S")
# An estimate allows for a longer encoding and for other prices in the block of the transaction.
MORE_UNITS: Final = 256
UNITS_PERCENT: Final = 101
COST_PERCENT: Final = 110
BASE_FEE_EIGHTHS: Final = 7

LEVEL_SLOT: Final = slot((), 0x07)
PRICE_SLOT: Final = slot((b"\x00",), 0x07)
MINIMUM_FEE_SLOT: Final = slot((b"\x01",), 0x03)


def unsigned_like(
    *,
    to: bytes | None,
    value: int,
    data: bytes,
    access_list: Iterable[tuple[bytes, Iterable[int]]] | None = None,
    nonce: int | None = None,
    max_fee_per_gas: int | None = None,
    max_priority_fee_per_gas: int | None = None,
) -> bytes:
    """Returns an envelope of about the size of the signed transaction."""
    entries = [
        [address, [key.to_bytes(32, "big") for key in keys]] for address, keys in access_list or ()
    ]
    items: list[Any] = [
        0, nonce or NONCE, max_priority_fee_per_gas or TIP, max_fee_per_gas or FEE_CAP, GAS,
        to or b"", value, data, entries, V, R, S,
    ]  # fmt: skip
    return DYNAMIC_FEE + rlp.encode(items)


def units_of(raw: bytes, level: int) -> int:
    """Returns the units of an envelope compressed at this level.

    Without the package ``brotli`` those of the uncompressed envelope, which is an upper bound but
    for a few bytes.
    """
    try:
        brotli = import_module("brotli")
    except ImportError:
        return UNITS_OF_A_BYTE * len(raw)
    return UNITS_OF_A_BYTE * len(brotli.compress(raw, quality=min(level, 11), lgwin=BROTLI_WINDOW))


def estimated_units(raw: bytes, level: int) -> int:
    """Returns the units for which an estimate pays."""
    return (units_of(raw, level) + MORE_UNITS) * UNITS_PERCENT // 100


def estimated_gas(layer: Any, base_fee: int, raw: bytes) -> int:
    """Returns the gas by which an estimate exceeds the gas of the execution.

    ``layer``: the state, ``base_fee`` in wei, ``raw``: see `unsigned_like`.
    """
    level = layer.storage(STATE_ADDRESS, LEVEL_SLOT)
    cost = estimated_units(raw, level) * layer.storage(STATE_ADDRESS, PRICE_SLOT)
    price = max(base_fee * BASE_FEE_EIGHTHS // 8, layer.storage(STATE_ADDRESS, MINIMUM_FEE_SLOT))
    return int(cost * COST_PERCENT // 100 // price) if price else 0


def call_gas(layer: Any, base_fee: int, raw: bytes) -> int:
    """Returns the gas that a call pays, at the price of its block and without the estimate's more.

    ``layer``: the state, ``base_fee`` in wei, ``raw``: see `unsigned_like`.
    """
    level = layer.storage(STATE_ADDRESS, LEVEL_SLOT)
    cost = estimated_units(raw, level) * layer.storage(STATE_ADDRESS, PRICE_SLOT)
    return int(cost // base_fee) if base_fee else 0
