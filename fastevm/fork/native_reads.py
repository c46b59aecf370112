"""Predicts which slots Base's native tokens (B20) read, because fastevm implements these tokens.

One batch then contains everything that a transfer reads in several steps: settings, balances,
allowances and the switches of the features. Entries of policies depend on the settings and are
fetched with the next batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from fastevm.core.primitives.keccak import keccak256

PREFIX: Final = bytes([0xB2, *bytes(9)])
VARIANTS: Final = 2  # number of token variants; byte 10 of a token's address is its variant
ACTIVATION_REGISTRY: Final = bytes.fromhex("8453000000000000000000000000000000000001")
POLICY_REGISTRY: Final = bytes.fromhex("8453000000000000000000000000000000000002")
FEATURES: Final = ("base.policy_registry", "base.b20_asset", "base.b20_stablecoin")
SELECTOR: Final = 4
WORD: Final = 32
ADDRESS: Final = 20
ADDRESSES: Final = 3  # most address arguments of a call that are considered
MAX_CALLS: Final = 64  # maximum number of calls per fetch for which reads are predicted
BALANCES, ALLOWANCES = 4, 5  # fields of a token that are mappings
# fields of a token that are single values: supply, pauses, policies and limits
FIELDS: Final = (3, 8, 9, 10, 11, 12)


def _root(namespace: str) -> int:
    """Returns the first slot of a namespace (ERC-7201)."""
    inner = int.from_bytes(keccak256(namespace.encode()), "big") - 1
    return int.from_bytes(keccak256(inner.to_bytes(WORD, "big")), "big") & ~0xFF


def _element(slot: int, key: bytes) -> int:
    """Returns the slot of an element of a mapping."""
    return int.from_bytes(keccak256(key.rjust(WORD, b"\0") + slot.to_bytes(WORD, "big")), "big")


TOKEN: Final = _root("base.b20")
SWITCHES: Final = tuple(
    (ACTIVATION_REGISTRY, _element(_root("base.activation_registry"), keccak256(name.encode())))
    for name in FEATURES
)


def is_token(address: bytes) -> bool:
    """Returns whether the address has the form of a native token's address."""
    return address.startswith(PREFIX) and len(address) == ADDRESS and address[10] < VARIANTS


def predicted_reads(
    calls: Iterable[Mapping[str, Any]],
) -> tuple[set[bytes], set[tuple[bytes, int]]]:
    """Returns the accounts and slots that calls of tokens read."""
    accounts: set[bytes] = set()
    slots: set[tuple[bytes, int]] = set()
    for _, call in zip(range(MAX_CALLS), calls, strict=False):
        token, sender, data = (_bytes(call, name) for name in ("to", "from", "data"))
        if not is_token(token):
            continue
        accounts |= {token, ACTIVATION_REGISTRY, POLICY_REGISTRY}
        slots.update(SWITCHES)
        slots |= {(token, TOKEN + field) for field in FIELDS}
        parties = [sender.rjust(ADDRESS, b"\0"), *_addresses(data or _bytes(call, "input"))]
        slots |= {(token, _element(TOKEN + BALANCES, party)) for party in parties}
        for owner in parties:
            allowed = _element(TOKEN + ALLOWANCES, owner)
            slots |= {(token, _element(allowed, party)) for party in parties if party != owner}
    return accounts, slots


def _bytes(call: Mapping[str, Any], name: str) -> bytes:
    value = call.get(name)
    try:
        return bytes.fromhex(value[2:]) if isinstance(value, str) else b""
    except ValueError:
        return b""


def _addresses(data: bytes) -> list[bytes]:
    """Returns the arguments that may be addresses."""
    words = (data[at : at + WORD] for at in range(SELECTOR, len(data) - WORD + 1, WORD))
    found = [word[-ADDRESS:] for word in words if not any(word[:-ADDRESS]) and any(word[:-8])]
    return found[:ADDRESSES]
