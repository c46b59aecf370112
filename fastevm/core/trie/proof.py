"""Verifies Merkle proofs, which lead from a root hash through a list of nodes to a value."""

from collections.abc import Sequence

from fastevm.core.primitives.keccak import keccak256
from fastevm.core.primitives.rlp import decode, encode
from fastevm.errors import FastevmError

# The root of the empty trie: the hash of an empty RLP string.
EMPTY_ROOT = keccak256(b"\x80")

_HASH_SIZE = 32
_BRANCH_ITEMS = 17
_SHORT_ITEMS = 2

_Item = bytes | list["_Item"]


class ProofError(FastevmError, ValueError):
    """An invalid proof: a node is missing, malformed, superfluous or has the wrong hash."""


def verify_proof(root: bytes, key: bytes, proof: Sequence[bytes]) -> bytes | None:
    """Returns the value at `key` in the trie with this root, or None if the key is absent.

    ``root`` is 32 bytes; ``proof`` is the RLP of the nodes from the root towards the key, as
    returned by `Trie.prove` and ``eth_getProof`` (Yellow Paper, appendix D). Raises ProofError
    unless the proof is complete, canonical and without superfluous nodes.
    """
    if len(root) != _HASH_SIZE:
        raise ValueError(f"a root has {_HASH_SIZE} bytes, not {len(root)}")
    if root == EMPTY_ROOT and not proof:
        return None
    nodes = _Nodes(proof)
    value = _walk(nodes, root, _nibbles(key))
    superfluous = len(proof) - nodes.taken
    if superfluous:
        raise ProofError(f"{superfluous} superfluous nodes after node {nodes.taken - 1}")
    return value


class _Nodes:
    """The nodes of a proof, read in order."""

    def __init__(self, proof: Sequence[bytes]) -> None:
        self.proof = proof
        self.taken = 0

    def next_node(self, expected: bytes) -> _Item:
        """Returns the next node, decoded. Raises ProofError if the node's hash is not this hash."""
        if self.taken == len(self.proof):
            raise ProofError(f"the proof ends before the node 0x{expected.hex()}")
        encoded = self.proof[self.taken]
        found = keccak256(encoded)
        if found != expected:
            raise self.error(f"hash 0x{found.hex()} instead of 0x{expected.hex()}")
        if self.taken and len(encoded) < _HASH_SIZE:
            raise self.error("shorter than 32 bytes, so it must be embedded in its parent")
        try:
            node: _Item = decode(encoded)
        except ValueError as error:
            raise self.error(str(error)) from None
        self.taken += 1
        return node

    def child(self, reference: _Item) -> _Item:
        """Returns the child of a node: embedded in the node, or the next node of the proof."""
        if isinstance(reference, list):
            if len(encode(reference)) >= _HASH_SIZE:
                raise self.error(
                    "an embedded child of 32 bytes or more: it must be referred to by hash"
                )
            return reference
        if len(reference) != _HASH_SIZE:
            raise self.error(f"a reference of {len(reference)} bytes")
        return self.next_node(reference)

    def error(self, reason: str) -> ProofError:
        """Returns an error that names the position of the current node."""
        return ProofError(f"node {self.taken}: {reason}")


def _walk(nodes: _Nodes, root: bytes, path: list[int]) -> bytes | None:
    node = nodes.next_node(root)
    while True:
        reference: _Item
        if not isinstance(node, list) or len(node) not in (_SHORT_ITEMS, _BRANCH_ITEMS):
            raise nodes.error("neither a branch, an extension nor a leaf")
        if len(node) == _BRANCH_ITEMS:
            if not path:
                return _value(nodes, node[-1]) or None
            reference = node[path[0]]
            path = path[1:]
            if reference == b"":
                return None
        else:
            part, is_leaf = _unpacked(nodes, node[0])
            if is_leaf:
                value = _value(nodes, node[1])
                return value if part == path else None
            if path[: len(part)] != part:
                return None
            path = path[len(part) :]
            reference = node[1]
        node = nodes.child(reference)


def _value(nodes: _Nodes, item: _Item) -> bytes:
    if isinstance(item, list):
        raise nodes.error("a list instead of a value")
    return item


def _unpacked(nodes: _Nodes, item: _Item) -> tuple[list[int], bool]:
    """Returns the nibbles of a hex-prefixed path and whether it is the path of a leaf."""
    if isinstance(item, list) or not item or item[0] >= 0x40:
        raise nodes.error("a malformed path")
    odd = bool(item[0] & 0x10)
    if not odd and item[0] & 0x0F:
        raise nodes.error("a malformed path")
    return _nibbles(item)[1 if odd else 2 :], bool(item[0] & 0x20)


def _nibbles(key: bytes) -> list[int]:
    return [nibble for byte in key for nibble in (byte >> 4, byte & 15)]
