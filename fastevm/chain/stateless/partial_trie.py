"""A partly known Merkle-Patricia trie, which can be read and changed and computes its root.

Source: Yellow Paper, appendix D. The nodes of a witness are in no particular order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec import Struct

from fastevm.core.primitives import rlp
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.trie.proof import EMPTY_ROOT
from fastevm.errors import FastevmError

KEY_NIBBLES: Final = 64  # nibbles of a key, which is a 32-byte hash
DIGEST_SIZE: Final = 32
BRANCHES: Final = 16


class MissingNode(FastevmError, KeyError):
    """A required node is unknown.

    Has the hash of the node and its path of nibbles from the root.
    """

    def __init__(self, digest: bytes, path: tuple[int, ...]) -> None:
        super().__init__(digest, path)
        self.digest, self.path = digest, path

    def __str__(self) -> str:
        at = "".join(f"{nibble:x}" for nibble in self.path) or "the root"
        return f"node 0x{self.digest.hex()} at path {at} is missing"


class BadNode(FastevmError, ValueError):
    """Bytes that are not a node of a trie with hashed keys."""


class Leaf(Struct, eq=False):
    """A leaf: the remaining nibbles of a key, and the value."""

    path: tuple[int, ...]
    value: bytes
    reference: bytes | None = None


class Extension(Struct, eq=False):
    """An extension: nibbles shared by all keys below it, and the branch below it."""

    path: tuple[int, ...]
    child: Node
    reference: bytes | None = None


class Branch(Struct, eq=False):
    """A branch: one child for each next nibble.

    Has no value, because all keys have equal lengths.
    """

    children: list[Node | None]
    reference: bytes | None = None


@dataclass(slots=True, eq=False)
class Unread:
    """A node of which only the hash is known."""

    digest: bytes
    reference: bytes = field(init=False)

    def __post_init__(self) -> None:
        self.reference = b"\xa0" + self.digest


Node = Leaf | Extension | Branch | Unread


class PartialTrie:
    """The trie with this ``root``. ``pool``: the known nodes, RLP by Keccak-256.

    Keys are 32 bytes (hashes of addresses or slots). Raises MissingNode if a path leads to a node
    outside the pool, and BadNode if bytes are not a node. A failed change does not affect `root`;
    the caller may repeat it after adding nodes to the pool. ``read`` is a set that may be shared
    with other tries; each required node's hash is added to it.
    """

    def __init__(
        self, root: bytes, pool: Mapping[bytes, bytes], read: set[bytes] | None = None
    ) -> None:
        self._pool = pool
        self._read_nodes = read
        self._root: Node | None = None if root == EMPTY_ROOT else Unread(root)

    def get(self, key: bytes) -> bytes | None:
        """Returns the value at ``key``, or None."""
        path, at = nibbles_of(key), 0
        if isinstance(self._root, Unread):
            self._root = self._read(self._root, ())
        node = self._root
        while node is not None:
            if isinstance(node, Leaf):
                return node.value if node.path == path[at:] else None
            if isinstance(node, Extension):
                end = at + len(node.path)
                if node.path != path[at:end]:
                    return None
                at = end
                below = self._read_branch(node.child, path[:at])
                node.child = below
                node = below
                continue
            assert isinstance(node, Branch)
            child = node.children[path[at]]
            at += 1
            if isinstance(child, Unread):
                child = node.children[path[at - 1]] = self._read(child, path[:at])
            node = child
        return None

    def put(self, key: bytes, value: bytes) -> None:
        """Sets the value at ``key``. An empty value deletes the key."""
        path = nibbles_of(key)
        if value:
            self._root = self._put(self._root, path, 0, value)
        else:
            self._root = self._without(self._root, path, 0)

    def root(self) -> bytes:
        """The root hash, 32 bytes."""
        node = self._root
        if node is None:
            return EMPTY_ROOT
        if isinstance(node, Unread):
            return node.digest
        return keccak256(_encoded(node))

    # --- nodes ------------------------------------------------------------------------------------

    def _read(self, node: Node, path: tuple[int, ...]) -> Node:
        if not isinstance(node, Unread):
            return node
        encoded = self._pool.get(node.digest)
        if encoded is None:
            raise MissingNode(node.digest, path)
        try:
            found = _decoded(rlp.decode(encoded), KEY_NIBBLES - len(path))
        except ValueError as error:
            raise BadNode(f"node 0x{node.digest.hex()}: {error}") from None
        if found is None or isinstance(found, Unread):
            raise BadNode(f"node 0x{node.digest.hex()}: a string where a node is expected")
        found.reference = node.reference
        if self._read_nodes is not None:
            self._read_nodes.add(node.digest)
        return found

    def _read_branch(self, node: Node, path: tuple[int, ...]) -> Branch:
        """Returns the branch below an extension."""
        found = self._read(node, path)
        if not isinstance(found, Branch):
            raise BadNode(f"node 0x{(found.reference or b'')[1:].hex()}: no branch")
        return found

    def _put(self, node: Node | None, path: tuple[int, ...], at: int, value: bytes) -> Node:
        if node is None:
            return Leaf(path[at:], value)
        node = self._read(node, path[:at])
        if isinstance(node, Branch):
            nibble = path[at]
            children = list(node.children)
            children[nibble] = self._put(children[nibble], path, at + 1, value)
            return Branch(children)
        assert not isinstance(node, Unread)
        shared = _shared(node.path, path, at)
        if isinstance(node, Leaf) and shared == len(node.path):
            return node if node.value == value else Leaf(node.path, value)
        if isinstance(node, Extension) and shared == len(node.path):
            below = self._read_branch(node.child, path[: at + shared])
            return Extension(node.path, self._put(below, path, at + shared, value))
        return _fork(node, shared, path[at + shared :], value)

    def _without(self, node: Node | None, path: tuple[int, ...], at: int) -> Node | None:
        """Returns the node without the key, or the same node object if the key is absent."""
        if node is None:
            return None
        read = self._read(node, path[:at])
        if isinstance(read, Leaf):
            return None if read.path == path[at:] else read
        if isinstance(read, Extension):
            end = at + len(read.path)
            if read.path != path[at:end]:
                return read
            read.child = below = self._read_branch(read.child, path[:end])
            child = self._without(below, path, end)
            assert child is not None  # a branch has two children
            return read if child is below else _joined(read.path, child)
        assert isinstance(read, Branch)
        child = read.children[path[at]]
        if isinstance(child, Unread):
            child = read.children[path[at]] = self._read(child, path[: at + 1])
        left = self._without(child, path, at + 1)
        return read if left is child else self._branch_with(read, path[: at + 1], left)

    def _branch_with(self, branch: Branch, path: tuple[int, ...], child: Node | None) -> Node:
        """Returns the branch with ``child`` at the end of ``path``.

        If only one child remains, returns the node that replaces the branch.
        """
        children = list(branch.children)
        children[path[-1]] = child
        rest = [nibble for nibble, item in enumerate(children) if item is not None]
        if len(rest) > 1:
            return Branch(children)
        only = children[rest[0]]
        assert only is not None  # a branch has two children, and one of them was removed
        return _joined((rest[0],), self._read(only, (*path[:-1], rest[0])))


def nibbles_of(key: bytes) -> tuple[int, ...]:
    """Returns the path of a 32-byte key. Raises ValueError for another size."""
    if len(key) != DIGEST_SIZE:
        raise ValueError(f"a key has {DIGEST_SIZE} bytes, not {len(key)}")
    return tuple(int(digit, 16) for digit in key.hex())


def _shared(path: tuple[int, ...], whole: tuple[int, ...], at: int) -> int:
    count = 0
    while count < len(path) and path[count] == whole[at + count]:
        count += 1
    return count


def _fork(
    node: Leaf | Extension, shared: int, rest: tuple[int, ...], value: bytes
) -> Branch | Extension:
    """Returns the branch at which a new key diverges from the path of a leaf or extension."""
    children: list[Node | None] = [None] * BRANCHES
    below = node.path[shared + 1 :]
    if isinstance(node, Leaf):
        children[node.path[shared]] = Leaf(below, node.value)
    else:
        children[node.path[shared]] = Extension(below, node.child) if below else node.child
    children[rest[0]] = Leaf(rest[1:], value)
    branch = Branch(children)
    return Extension(node.path[:shared], branch) if shared else branch


def _joined(path: tuple[int, ...], child: Node) -> Node:
    """Returns a node with nibbles prepended to its path. A branch is put below a new extension."""
    if isinstance(child, Leaf):
        return Leaf(path + child.path, child.value)
    if isinstance(child, Extension):
        return Extension(path + child.path, child.child)
    return Extension(path, child)


# --- encoding -------------------------------------------------------------------------------------


def _decoded(item: Any, nibbles: int) -> Node | None:
    """Decodes a node. ``nibbles``: the nibbles of a key from this node on. Raises ValueError."""
    if isinstance(item, bytes):
        if not item:
            return None
        if len(item) != DIGEST_SIZE:
            raise ValueError(f"a reference of {len(item)} bytes")
        return Unread(item)
    if len(item) == BRANCHES + 1:
        if nibbles < 1 or item[BRANCHES] != b"":
            raise ValueError("a branch at the end of a key")
        children = [_inner(child, nibbles - 1) for child in item[:BRANCHES]]
        if sum(child is not None for child in children) < 2:
            raise ValueError("a branch with less than two children")
        return Branch(children)
    if len(item) != 2 or not isinstance(item[0], bytes):
        raise ValueError(f"a list of {len(item)} items")
    path, is_leaf = _unpacked(item[0])
    if is_leaf:
        if len(path) != nibbles or not isinstance(item[1], bytes) or not item[1]:
            raise ValueError("a leaf at another depth than its key's")
        return Leaf(path, item[1])
    child = _inner(item[1], nibbles - len(path)) if 0 < len(path) < nibbles else None
    if child is None or isinstance(child, Leaf | Extension):
        raise ValueError("an extension without a branch")
    return Extension(path, child)


def _inner(item: Any, nibbles: int) -> Node | None:
    """Decodes a reference: a hash, or a node shorter than a hash."""
    node = _decoded(item, nibbles)
    if isinstance(node, Leaf | Extension | Branch) and len(_encoded(node)) >= DIGEST_SIZE:
        raise ValueError("a node inside another that must be named by its hash")
    return node


def _unpacked(packed: bytes) -> tuple[tuple[int, ...], bool]:
    digits = [int(digit, 16) for digit in packed.hex()]
    if not digits or digits[0] > 3 or (digits[0] in (0, 2) and digits[1] != 0):
        raise ValueError("a path with an unknown flag")
    return tuple(digits[1 if digits[0] & 1 else 2 :]), digits[0] >= 2


def _packed(path: tuple[int, ...], *, is_leaf: bool) -> bytes:
    flag = (2 if is_leaf else 0) + len(path) % 2
    digits = (flag, *path) if len(path) % 2 else (flag, 0, *path)
    return bytes(high << 4 | low for high, low in _pairs(digits))


def _pairs(digits: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    return zip(digits[::2], digits[1::2], strict=True)


def _encoded(node: Leaf | Extension | Branch) -> bytes:
    """Returns the RLP of a node."""
    if isinstance(node, Leaf):
        body = rlp.encode(_packed(node.path, is_leaf=True)) + rlp.encode(node.value)
    elif isinstance(node, Extension):
        body = rlp.encode(_packed(node.path, is_leaf=False)) + _reference(node.child)
    else:
        body = b"".join(map(_reference, node.children)) + b"\x80"
    return _list_head(len(body)) + body


def _reference(node: Node | None) -> bytes:
    """Returns the reference to a node: RLP of its hash, or the node itself if it is shorter."""
    if node is None:
        return b"\x80"
    if node.reference is None:
        assert not isinstance(node, Unread)
        encoded = _encoded(node)
        short = len(encoded) < DIGEST_SIZE
        node.reference = encoded if short else b"\xa0" + keccak256(encoded)
    return node.reference


def _list_head(size: int) -> bytes:
    if size < 56:
        return bytes((0xC0 + size,))
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((0xF7 + len(length),)) + length
