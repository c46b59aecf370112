"""Computes the state root after changes to a partly known state, from the nodes of a witness.

Source: Yellow Paper, appendix D. A node is a list as in RLP; a path is a list of nibbles.
"""

from typing import Any

from .encoding import (
    EMPTY_STRING,
    compact,
    keccak256,
    nibbles_of,
    reference,
    rlp_decode,
    rlp_encode,
    to_bytes,
    word,
)

EMPTY_ROOT = keccak256(bytes([EMPTY_STRING]))
NO_CODE = keccak256(b"")
BRANCHES = 16
Node = Any


class PartialTrie:
    """A trie with some known nodes. Reading an unknown node raises KeyError."""

    def __init__(self, nodes: dict[bytes, bytes], root: bytes) -> None:
        self.nodes = nodes
        self.root: Node = b"" if root == EMPTY_ROOT else root

    def resolved(self, at: Node) -> Node:
        """Returns the node behind a reference."""
        if isinstance(at, bytes) and at:
            return rlp_decode(self.nodes[at])
        return at

    def get(self, key: bytes) -> bytes:
        """Returns the value of a key; empty if there is none."""
        node, path = self.resolved(self.root), nibbles_of(keccak256(key))
        while node:
            if len(node) == BRANCHES + 1:
                node, path = self.resolved(node[path[0]]), path[1:]
                continue
            part, is_leaf = expanded(node[0])
            if path[: len(part)] != part:
                return b""
            if is_leaf:
                return bytes(node[1])
            node, path = self.resolved(node[1]), path[len(part) :]
        return b""

    def set(self, key: bytes, value: bytes) -> None:
        """Sets a value; an empty value removes the key."""
        path = nibbles_of(keccak256(key))
        change = self.put if value else self.removed
        self.root = change(self.resolved(self.root), path, value)

    def put(self, node: Node, path: list[int], value: bytes) -> Node:
        if not node:
            return [compact(path, is_leaf=True), value]
        if len(node) == BRANCHES + 1:
            branch = list(node)
            branch[path[0]] = self.put(self.resolved(branch[path[0]]), path[1:], value)
            return branch
        part, is_leaf = expanded(node[0])
        common = 0
        while common < len(part) and part[common] == path[common]:
            common += 1
        if common == len(part):
            if is_leaf:
                return [node[0], value]
            return [node[0], self.put(self.resolved(node[1]), path[common:], value)]
        branch = [b""] * (BRANCHES + 1)
        rest = part[common + 1 :]
        below = [compact(rest, is_leaf), node[1]] if is_leaf or rest else node[1]
        branch[part[common]] = below
        branch[path[common]] = [compact(path[common + 1 :], is_leaf=True), value]
        return [compact(path[:common], is_leaf=False), branch] if common else branch

    def removed(self, node: Node, path: list[int], _: bytes) -> Node:
        if not node:
            return b""
        if len(node) == BRANCHES + 1:
            branch = list(node)
            branch[path[0]] = self.removed(self.resolved(branch[path[0]]), path[1:], b"")
            return self.collapsed(branch)
        part, is_leaf = expanded(node[0])
        if path[: len(part)] != part:
            return node
        if is_leaf:
            return b""
        below = self.removed(self.resolved(node[1]), path[len(part) :], b"")
        return self.joined(part, below)

    def collapsed(self, branch: list[Node]) -> Node:
        """Returns the branch.

        If it has a single entry left, returns a leaf or extension instead.
        """
        left = [nibble for nibble in range(BRANCHES) if branch[nibble]]
        if len(left) > 1:
            return branch
        return self.joined(left, self.resolved(branch[left[0]]))

    def joined(self, path: list[int], below: Node) -> Node:
        """Returns a node that has ``below`` at ``path``.

        Merges paths if ``below`` is a leaf or extension.
        """
        if len(below) == BRANCHES + 1:
            return [compact(path, is_leaf=False), below]
        part, is_leaf = expanded(below[0])
        return [compact(path + part, is_leaf), below[1]]

    def root_hash(self) -> bytes:
        if not self.root:
            return EMPTY_ROOT
        if isinstance(self.root, bytes):
            return self.root
        return keccak256(rlp_encode(folded(self.root)))


def folded(node: Node) -> Node:
    """Returns the node with references in place of the changed nodes below it."""
    if len(node) == BRANCHES + 1:
        return [below if isinstance(below, bytes) else reference(folded(below)) for below in node]
    path, below = node
    return [path, below if isinstance(below, bytes) else reference(folded(below))]


def expanded(path: bytes) -> tuple[list[int], bool]:
    """Returns the nibbles of a path, and whether the path belongs to a leaf."""
    nibbles = nibbles_of(path)
    return nibbles[1 if nibbles[0] % 2 else 2 :], nibbles[0] >= 2


def state_root_after(nodes: list[bytes], root: bytes, change: dict[str, Any]) -> bytes:
    """Returns the state root after changes.

    ``change``: the changed nonce, balance, code and slots of each address (hex).
    """
    known = {keccak256(node): node for node in nodes}
    state = PartialTrie(known, root)
    # Sets values before it deletes: a branch that loses an entry may require a node that is not
    # known.
    for text, parts in sorted(change.items()):
        address = bytes.fromhex(text.removeprefix("0x"))
        account = state.get(address)
        fields = rlp_decode(account) if account else [b"", b"", EMPTY_ROOT, NO_CODE]
        storage = PartialTrie(known, fields[2])
        slots = parts.get("storage", {}).items()
        for slot, value in sorted(slots, key=lambda item: not item[1]):
            storage.set(word(slot), rlp_encode(to_bytes(value)) if value else b"")
        fields[2] = storage.root_hash()
        if "nonce" in parts:
            fields[0] = to_bytes(parts["nonce"])
        if "balance" in parts:
            fields[1] = to_bytes(parts["balance"])
        if "code" in parts:
            fields[3] = keccak256(bytes.fromhex(parts["code"].removeprefix("0x")))
        is_empty = fields[:2] == [b"", b""] and fields[3] == NO_CODE
        state.set(address, b"" if is_empty else rlp_encode(fields))
    return state.root_hash()
