"""Runs trie tests: keys and values put into a Merkle-Patricia trie must give a root."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from fastevm.conformance.fields import bytes_of
from fastevm.conformance.runner import Case, Mismatch
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.trie.trie import Trie

Pairs = Iterable[tuple[str, str | None]]


def cases(name: str, content: Mapping[str, Any]) -> Iterator[Case]:
    """Yields a case for each test of the file. The file name determines their kind."""
    file = name.rsplit("/", 1)[-1]
    for title, test in content.items():
        if "tests" in test:
            yield title, None, partial(check_neighbours, test)
        else:
            hashed = "secure" in file.casefold()
            any_order = "anyorder" in file or isinstance(test["in"], Mapping)
            yield title, None, partial(check_root, test, hashed, any_order)


def check_root(test: Mapping[str, Any], hashed: bool, any_order: bool) -> Mismatch | None:
    """Applies the pairs in order.

    If the order must not matter, applies them in reverse order, too.
    """
    pairs = list(test["in"].items() if isinstance(test["in"], Mapping) else test["in"])
    expected = bytes_of(test["root"])
    for order in (pairs, pairs[::-1]) if any_order else (pairs,):
        root = root_of(order, hashed)
        if root != expected:
            return Mismatch(f"root 0x{expected.hex()}", f"0x{root.hex()}")
    return None


def root_of(pairs: Pairs, hashed: bool) -> bytes:
    """Returns the root after applying all pairs in order. The value None deletes a key."""
    trie = Trie()
    for key, value in pairs:
        raw = keccak256(text_of(key)) if hashed else text_of(key)
        if value:
            trie.put(raw, text_of(value))
        else:
            trie.delete(raw)
    return trie.root()


def check_neighbours(test: Mapping[str, Any]) -> Mismatch | None:
    """Checks which key comes before and after each text of the test, and which texts are keys.

    The tries of fastevm have no cursor, so the neighbours come from the sorted list of keys. A
    lookup must find each key, and must not find the other texts.
    """
    trie, keys = Trie(), sorted(test["in"])
    for key in keys:
        trie.put(key.encode(), key.encode())
    for text, before, after in test["tests"]:
        neighbours = (
            next((key for key in reversed(keys) if key < text), ""),
            next((key for key in keys if key > text), ""),
        )
        if neighbours != (before, after):
            return Mismatch(f"{text!r} between {before!r} and {after!r}", repr(neighbours))
        if text and (trie.get(text.encode()) is not None) != (text in keys):
            return Mismatch(f"{text!r} found only if it was put", "the contrary")
    return None


def text_of(text: str) -> bytes:
    """Decodes hex after 0x, otherwise encodes the text."""
    return bytes_of(text) if text.startswith("0x") else text.encode()
