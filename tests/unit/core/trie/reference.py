"""A recursive Merkle-Patricia trie as in appendix D of the Yellow Paper."""

from collections.abc import Mapping, Sequence
from typing import Any

import rlp
from Crypto.Hash import keccak


def keccak256(data: bytes) -> bytes:
    return keccak.new(digest_bits=256, data=data).digest()


def nibbles_of(key: bytes) -> tuple[int, ...]:
    return tuple(int(digit, 16) for digit in key.hex())


def hex_prefix(path: Sequence[int], is_leaf: bool) -> bytes:
    head = [2 * is_leaf + 1] if len(path) % 2 else [2 * is_leaf, 0]
    digits = "".join(f"{nibble:x}" for nibble in (*head, *path))
    return bytes.fromhex(digits)


def common_beginning(paths: list[tuple[int, ...]]) -> int:
    low, high = min(paths), max(paths)
    count = 0
    while count < min(len(low), len(high)) and low[count] == high[count]:
        count += 1
    return count


def structure(items: dict[tuple[int, ...], bytes]) -> Any:
    """Returns the node of these items as nested lists and bytes."""
    if len(items) == 1:
        [(path, value)] = items.items()
        return [hex_prefix(path, True), value]
    common = common_beginning(list(items))
    if common:
        path = next(iter(items))[:common]
        below = {rest[common:]: value for rest, value in items.items()}
        return [hex_prefix(path, False), reference(structure(below))]
    branch: list[Any] = []
    for nibble in range(16):
        below = {path[1:]: value for path, value in items.items() if path and path[0] == nibble}
        branch.append(reference(structure(below)) if below else b"")
    return [*branch, items.get((), b"")]


def reference(node: Any) -> Any:
    encoded = rlp.encode(node)
    return node if len(encoded) < 32 else keccak256(encoded)


def root_of(items: Mapping[bytes, bytes]) -> bytes:
    if not items:
        return keccak256(rlp.encode(b""))
    node = structure({nibbles_of(key): value for key, value in items.items()})
    return keccak256(rlp.encode(node))
