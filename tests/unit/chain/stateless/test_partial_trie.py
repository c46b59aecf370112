"""Tests that a partial trie gives the whole trie's values and root, or names the missing node."""

from __future__ import annotations

import random

import pytest

from fastevm.chain.stateless.partial_trie import BadNode, MissingNode, PartialTrie
from fastevm.core.primitives import rlp
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.trie.proof import EMPTY_ROOT
from fastevm.core.trie.trie import Trie

SEED = 0x711E


def keys_of(rng: random.Random, count: int) -> list[bytes]:
    """Returns random keys. Some differ only in the last byte, so that the trie embeds nodes."""
    return [
        rng.randbytes(32) if rng.random() < 0.7 else bytes(31) + rng.randbytes(1)
        for _ in range(count)
    ]


def value_of(rng: random.Random) -> bytes:
    return rng.randbytes(rng.choice((0, 2, 40))) + b"\x01"


def pool_of(trie: Trie, keys: list[bytes]) -> dict[bytes, bytes]:
    return {keccak256(node): node for key in keys for node in trie.prove(key)}


def whole(rng: random.Random, count: int) -> tuple[Trie, list[bytes], dict[bytes, bytes]]:
    trie, keys = Trie(), keys_of(rng, count)
    values = {key: value_of(rng) for key in keys}
    for key, value in values.items():
        trie.put(key, value)
    return trie, keys, values


@pytest.mark.parametrize("count", [1, 2, 5, 40, 300])
def test_values_and_roots_after_changes_are_those_of_the_whole_trie(count: int) -> None:
    rng = random.Random(SEED + count)
    for _ in range(8):
        trie, keys, values = whole(rng, count)
        partial = PartialTrie(trie.root(), pool_of(trie, keys))
        assert all(partial.get(key) == value for key, value in values.items())
        for _ in range(40):
            key = rng.choice(keys) if rng.random() < 0.8 else rng.randbytes(32)
            value = b"" if rng.random() < 0.5 else value_of(rng)
            try:
                partial.put(key, value)
            except MissingNode:  # the proof lacks a node on the path of a new key
                assert key not in keys
                continue
            trie.put(key, value)
            assert partial.get(key) == (value or None)
            assert partial.root() == trie.root()


def test_a_trie_without_keys_has_the_empty_root() -> None:
    trie = PartialTrie(EMPTY_ROOT, {})
    trie.put(bytes(32), b"\x05")
    trie.put(bytes(32), b"")
    assert trie.root() == EMPTY_ROOT
    assert trie.get(bytes(32)) is None


def test_a_missing_node_is_named_with_its_hash_and_path() -> None:
    trie = Trie()
    for key in (b"\x12" * 32, b"\x13" + b"\x55" * 31, b"\x13" + b"\x56" * 31):
        trie.put(key, b"\x07" * 40)
    nodes = trie.prove(b"\x13" + b"\x55" * 31)
    pool = {keccak256(node): node for node in nodes[:-3]}
    partial = PartialTrie(trie.root(), pool)
    with pytest.raises(MissingNode) as caught:
        partial.get(b"\x13" + b"\x55" * 31)
    assert caught.value.path == (1, 3)
    assert caught.value.digest == keccak256(nodes[-3])
    assert str(caught.value) == f"node 0x{caught.value.digest.hex()} at path 13 is missing"
    assert partial.root() == trie.root()


def test_a_deletion_wants_the_last_sibling() -> None:
    trie = Trie()
    left, right = b"\x10" * 32, b"\x20" * 32
    trie.put(left, b"\x01" * 40)
    trie.put(right, b"\x02" * 40)
    pool = pool_of(trie, [left])
    partial = PartialTrie(trie.root(), pool)
    with pytest.raises(MissingNode, match="path 2 is missing"):
        partial.put(left, b"")
    pool |= pool_of(trie, [right])
    partial.put(left, b"")
    trie.put(left, b"")
    assert partial.root() == trie.root()


LONG = b"\x01" * 40
BAD = {
    "a string": rlp.encode(b"\x01" * 33),
    "a hash": rlp.encode(b"\x01" * 32),
    "three items": rlp.encode([b"\x20", b"\x01", b"\x02"]),
    "no rlp": b"\xf8",
    "bytes after it": rlp.encode([b"\x20" + bytes(32), LONG]) + b"\x00",
    "a short leaf": rlp.encode([b"\x20" + bytes(31), LONG]),
    "a leaf without value": rlp.encode([b"\x20" + bytes(32), b""]),
    "a leaf whose value is a list": rlp.encode([b"\x20" + bytes(32), [LONG]]),
    "an unknown flag": rlp.encode([b"\x40" + bytes(32), LONG]),
    "a padding that is no zero": rlp.encode([b"\x21" + bytes(32), LONG]),
    "no path": rlp.encode([b"", LONG]),
    "an extension without path": rlp.encode([b"\x00", b"\x01" * 32]),
    "an extension past the key": rlp.encode([b"\x00" + bytes(40), b"\x01" * 32]),
    "an extension to nothing": rlp.encode([b"\x11", b""]),
    "a branch with a value": rlp.encode([b"\x01" * 32] * 16 + [b"\x01"]),
    "a branch with one child": rlp.encode([b"\x01" * 32] + [b""] * 16),
    "a branch of short hashes": rlp.encode([b"\x01" * 31] * 16 + [b""]),
    "a long node inside": rlp.encode([[b"\x30" + bytes(31), LONG]] * 2 + [b""] * 15),
    "lists in lists": rlp.encode([[[[[[]]]]]]),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_node_is_refused(name: str) -> None:
    root = keccak256(BAD[name])
    for trie in (PartialTrie(root, {root: BAD[name]}) for _ in range(3)):
        with pytest.raises(BadNode):
            trie.get(bytes(32))
        with pytest.raises(BadNode):
            trie.put(bytes(32), b"\x01")
        with pytest.raises(BadNode):
            trie.put(bytes(32), b"")


def test_an_extension_needs_a_branch_below() -> None:
    leaf = rlp.encode([b"\x3f" + b"\xff" * 31, LONG])
    extension = rlp.encode([b"\x1f", keccak256(leaf)])
    pool = {keccak256(node): node for node in (leaf, extension)}
    for value in (b"\x01", b""):
        with pytest.raises(BadNode, match="no branch"):
            PartialTrie(keccak256(extension), pool).put(b"\xff" * 32, value)
    with pytest.raises(BadNode, match="no branch"):
        PartialTrie(keccak256(extension), pool).get(b"\xff" * 32)


def test_a_key_has_32_bytes() -> None:
    with pytest.raises(ValueError, match="32 bytes, not 31"):
        PartialTrie(EMPTY_ROOT, {}).put(bytes(31), b"\x01")
