"""Estimates the L1 data fee of an unsigned transaction on Arbitrum.

The fee is the number of units times the price per unit, which the storage of ArbOS contains; a unit
is 1/16 of a byte of the compressed transaction. Source: Nitro, ``arbos/l1pricing/l1pricing.go`` and
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
# Values for fields that the request omits. Like real values, they do not compress.
NONCE: Final = 12_125_040_168_863_184_969
TIP: Final = 968_523_046
FEE_CAP: Final = 4_054_464_639
GAS: Final = 3_091_729_570
V: Final = 126_483
R: Final = keccak256(b"R")
S: Final = keccak256(b"S")
# Margin for a longer encoding and for price changes until the transaction is included.
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
    """Encodes a transaction about as long as the signed transaction will be."""
    entries = [
        [address, [key.to_bytes(32, "big") for key in keys]] for address, keys in access_list or ()
    ]
    items: list[Any] = [
        0, nonce or NONCE, max_priority_fee_per_gas or TIP, max_fee_per_gas or FEE_CAP, GAS,
        to or b"", value, data, entries, V, R, S,
    ]  # fmt: skip
    return DYNAMIC_FEE + rlp.encode(items)


def units_of(raw: bytes, level: int) -> int:
    """Returns the L1 data units of an envelope, compressed with brotli at ``level`` (0 to 11).

    Without the package ``brotli``, returns the units of the uncompressed envelope; compression can
    exceed that number by a few bytes only.
    """
    try:
        brotli = import_module("brotli")
    except ImportError:
        return UNITS_OF_A_BYTE * len(raw)
    return UNITS_OF_A_BYTE * len(brotli.compress(raw, quality=min(level, 11), lgwin=BROTLI_WINDOW))


def estimated_units(raw: bytes, level: int) -> int:
    """Returns the L1 data units of an envelope, with the margins that Nitro adds to estimates."""
    return (units_of(raw, level) + MORE_UNITS) * UNITS_PERCENT // 100


def estimated_gas(layer: Any, base_fee: int, raw: bytes) -> int:
    """Returns the gas that an estimate adds to the execution gas for the L1 data fee.

    ``layer``: the state; ``base_fee`` in wei; ``raw``: the envelope from `unsigned_like`.
    """
    level = layer.storage(STATE_ADDRESS, LEVEL_SLOT)
    cost = estimated_units(raw, level) * layer.storage(STATE_ADDRESS, PRICE_SLOT)
    price = max(base_fee * BASE_FEE_EIGHTHS // 8, layer.storage(STATE_ADDRESS, MINIMUM_FEE_SLOT))
    return int(cost * COST_PERCENT // 100 // price) if price else 0


def call_gas(layer: Any, base_fee: int, raw: bytes) -> int:
    """Returns the gas that a call pays for the L1 data fee, without the margins of an estimate.

    ``layer``: the state; ``base_fee`` of the call's block in wei; ``raw``: see `unsigned_like`.
    """
    level = layer.storage(STATE_ADDRESS, LEVEL_SLOT)
    cost = estimated_units(raw, level) * layer.storage(STATE_ADDRESS, PRICE_SLOT)
    return int(cost // base_fee) if base_fee else 0
