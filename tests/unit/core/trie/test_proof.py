"""Tests that proofs of present and absent keys verify, and that all other proofs fail."""

import random

import pytest
import rlp
from hypothesis import given, settings
from hypothesis import strategies as st

from fastevm.core.trie.trie import EMPTY_ROOT, ProofError, Trie, verify_proof

from .reference import keccak256
from .test_trie import keys, maps, trie_of


@given(maps, st.lists(keys, max_size=10))
@settings(max_examples=200)
def test_a_proof_gives_the_value_or_its_absence(
    items: dict[bytes, bytes], others: list[bytes]
) -> None:
    trie = trie_of(items)
    for key in [*items, *others]:
        proof = trie.prove(key)
        assert verify_proof(trie.root(), key, proof) == items.get(key)
        assert all(len(node) >= 32 for node in proof[1:])


@given(maps.filter(bool), st.data())
@settings(max_examples=200)
def test_a_flipped_bit_is_noticed(items: dict[bytes, bytes], data: st.DataObject) -> None:
    trie = trie_of(items)
    key = data.draw(st.sampled_from(sorted(items)))
    proof = trie.prove(key)
    which = data.draw(st.integers(0, len(proof) - 1))
    node = bytearray(proof[which])
    node[data.draw(st.integers(0, len(node) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    proof[which] = bytes(node)
    with pytest.raises(ProofError, match=f"node {which}: hash"):
        verify_proof(trie.root(), key, proof)


def large_trie() -> tuple[Trie, list[bytes]]:
    paths = [keccak256(i.to_bytes(2, "big")) for i in range(500)]
    return trie_of(dict.fromkeys(paths, b"v" * 50)), paths


def test_every_version_proves_its_own_value() -> None:
    trie, paths = large_trie()
    versions = []
    for number in range(20):
        trie.put(paths[0], b"value %d" % number)
        versions.append(trie.copy())
    for number, version in enumerate(versions):
        proof = version.prove(paths[0])
        assert verify_proof(version.root(), paths[0], proof) == b"value %d" % number


def test_a_proof_of_another_root_or_key_fails() -> None:
    trie, paths = large_trie()
    proof = trie.prove(paths[0])
    with pytest.raises(ProofError, match="node 0: hash"):
        verify_proof(keccak256(b"another"), paths[0], proof)
    wrong = 0
    for path in paths[1:50]:
        try:
            assert verify_proof(trie.root(), path, proof) != b"v" * 50
        except ProofError:
            wrong += 1
    assert wrong > 40


def test_missing_superfluous_and_swapped_nodes_fail() -> None:
    trie, paths = large_trie()
    root, proof = trie.root(), trie.prove(paths[0])
    with pytest.raises(ProofError, match="ends before the node"):
        verify_proof(root, paths[0], proof[:-1])
    with pytest.raises(ProofError, match="ends before the node"):
        verify_proof(root, paths[0], [])
    with pytest.raises(ProofError, match="1 superfluous nodes"):
        verify_proof(root, paths[0], [*proof, proof[-1]])
    with pytest.raises(ProofError, match="node 0: hash"):
        verify_proof(root, paths[0], proof[::-1])


def test_the_empty_trie_proves_absence_without_nodes() -> None:
    assert Trie().prove(b"key") == []
    assert verify_proof(EMPTY_ROOT, b"key", []) is None
    with pytest.raises(ValueError, match="32 bytes"):
        verify_proof(b"short", b"key", [])


def test_malformed_nodes_are_named() -> None:
    def check(node: object, message: str) -> None:
        encoded = node if isinstance(node, bytes) else rlp.encode(node)
        with pytest.raises(ProofError, match=message):
            verify_proof(keccak256(encoded), b"k" * 32, [encoded])

    check(b"\xc3\x01", "node 0:")
    check(b"\x81\x01", "node 0:")
    check(b"abc", "node 0:")
    check([b"a", b"b", b"c"], "neither a branch, an extension nor a leaf")
    check([b"", b"value"], "malformed path")
    check([b"\x41", b"value"], "malformed path")
    check([b"\x05", b"value"], "malformed path")
    check([b"\x16", b"short"], "reference of 5 bytes")
    check([b"\x20" + b"k" * 32, [b"value"]], "a list instead of a value")
    check([b"\x16", [b"\x2b", b"v" * 40]], "referred to by hash")


def test_random_bytes_never_verify() -> None:
    rng = random.Random(5)
    trie, paths = large_trie()
    root = trie.root()
    for _ in range(300):
        proof = [rng.randbytes(rng.randrange(1, 200)) for _ in range(rng.randrange(1, 4))]
        with pytest.raises(ProofError):
            verify_proof(root, paths[0], proof)
        with pytest.raises(ProofError):
            verify_proof(keccak256(proof[0]), paths[0], proof)
