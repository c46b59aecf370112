"""Implements Keccak, RLP and the roots of ordered lists, as far as the OP-stack rules need them."""

from typing import Any

from Crypto.Hash import keccak

WORD = 32
SHORT = 55
EMPTY_STRING = 0x80
EMPTY_LIST = 0xC0


class DecodingError(Exception):
    """The bytes are not a valid encoding."""


def keccak256(data: bytes) -> bytes:
    """Returns the Keccak-256 hash, 32 bytes."""
    return keccak.new(digest_bits=256, data=data).digest()


def to_bytes(number: int) -> bytes:
    """Returns big-endian bytes without leading zeros. Zero becomes empty bytes."""
    return number.to_bytes((number.bit_length() + 7) // 8, "big")


def word(number: int) -> bytes:
    """Returns 32 big-endian bytes."""
    return number.to_bytes(WORD, "big")


def from_hex(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))


def to_hex(data: bytes) -> str:
    return "0x" + bytes(data).hex()


def rlp_encode(item: Any) -> bytes:
    """Returns the RLP of bytes, integers, and lists or tuples of bytes and integers."""
    if isinstance(item, int):
        return rlp_encode(to_bytes(item))
    if isinstance(item, bytes):
        if len(item) == 1 and item[0] < EMPTY_STRING:
            return item
        return rlp_head(len(item), EMPTY_STRING) + item
    payload = b"".join(rlp_encode(part) for part in item)
    return rlp_head(len(payload), EMPTY_LIST) + payload


def rlp_head(length: int, offset: int) -> bytes:
    if length <= SHORT:
        return bytes([offset + length])
    size = to_bytes(length)
    return bytes([offset + SHORT + len(size)]) + size


def rlp_decode(data: bytes) -> Any:
    """Returns nested lists of bytes. Raises DecodingError unless the data is one canonical item."""
    item, rest = rlp_item(data)
    if rest:
        raise DecodingError("bytes after the item")
    if rlp_encode(item) != data:
        raise DecodingError("not canonical")
    return item


def rlp_item(data: bytes) -> tuple[Any, bytes]:
    """Returns the first item, and the bytes after it."""
    if not data:
        raise DecodingError("no item")
    first = data[0]
    if first < EMPTY_STRING:
        return data[:1], data[1:]
    offset = EMPTY_LIST if first >= EMPTY_LIST else EMPTY_STRING
    length, start = first - offset, 1
    if length > SHORT:
        start += length - SHORT
        length = int.from_bytes(data[1:start], "big")
    payload, rest = data[start : start + length], data[start + length :]
    if len(payload) != length:
        raise DecodingError("the item is cut off")
    if offset == EMPTY_STRING:
        return payload, rest
    items = []
    while payload:
        item, payload = rlp_item(payload)
        items.append(item)
    return items, rest


def ordered_root(items: list[bytes]) -> bytes:
    """Returns the root of a trie of items with the RLP of the index as key.

    Source: Yellow Paper, appendix D.
    """
    pairs = [(nibbles_of(rlp_encode(index)), item) for index, item in enumerate(items)]
    return keccak256(rlp_encode(trie_node(pairs, 0)) if pairs else bytes([EMPTY_STRING]))


def nibbles_of(key: bytes) -> list[int]:
    return [nibble for byte in key for nibble in (byte >> 4, byte & 15)]


def trie_node(pairs: list[tuple[list[int], bytes]], depth: int) -> list[Any]:
    """Returns the trie node of all pairs. Their keys have the first `depth` nibbles in common."""
    if len(pairs) == 1:
        key, item = pairs[0]
        return [compact(key[depth:], is_leaf=True), item]
    common = shared_prefix([key for key, _ in pairs], depth)
    if common > depth:
        path = compact(pairs[0][0][depth:common], is_leaf=False)
        return [path, reference(trie_node(pairs, common))]
    node: list[Any] = [b""] * 17
    for nibble in range(16):
        below = [(key, item) for key, item in pairs if len(key) > depth and key[depth] == nibble]
        if below:
            node[nibble] = reference(trie_node(below, depth + 1))
    node[16] = next((item for key, item in pairs if len(key) == depth), b"")
    return node


def shared_prefix(keys: list[list[int]], depth: int) -> int:
    """Returns the position of the first nibble in which the keys differ."""
    least, most = min(keys), max(keys)
    while depth < min(len(least), len(most)) and least[depth] == most[depth]:
        depth += 1
    return depth


def compact(nibbles: list[int], is_leaf: bool) -> bytes:
    """Returns the hex-prefix encoding of a path."""
    flag = 2 * is_leaf
    padded = [flag + 1, *nibbles] if len(nibbles) % 2 else [flag, 0, *nibbles]
    return bytes(16 * high + low for high, low in zip(padded[::2], padded[1::2], strict=True))


def reference(node: list[Any]) -> Any:
    """Returns what a parent contains for this node: the node itself if short, else its hash."""
    encoded = rlp_encode(node)
    return node if len(encoded) < WORD else keccak256(encoded)
