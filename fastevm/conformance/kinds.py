"""Recognises the kind of tests in a file by its members, so that any layout of folders works."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from fastevm.conformance import (
    basic,
    blockchain,
    difficulty,
    engine,
    precompile,
    rlp,
    state,
    transaction,
    trie,
    vm,
)
from fastevm.conformance.runner import Apart, Case, Suite
from fastevm.conformance.skips import skips_of

SUITES: Final[Mapping[str, tuple[Suite, str]]] = {
    "state": (state.cases, "one transaction on a given state, in every fork"),
    "blockchain": (blockchain.cases, "blocks imported one by one on a genesis state"),
    "engine": (engine.cases, "blocks delivered as a consensus client does, one by one"),
    "transaction": (transaction.cases, "encoded transactions, accepted or refused"),
    "trie": (trie.cases, "roots of tries"),
    "rlp": (rlp.cases, "the recursive length prefix, valid and not"),
    "difficulty": (difficulty.cases, "the difficulty of a block by its parent"),
    "basic": (basic.cases, "keys, signatures, genesis blocks, proof of work"),
    "vm": (vm.cases, "one message frame under Frontier rules"),
    "precompile": (precompile.cases, "input, output and gas of precompiled contracts"),
}
"""Kind of tests -> its runner, and what they test."""

INDEX: Final = "index"
"""The kind of files that describe others, such as a release's list of its tests."""

EOF_FORMAT: Final = "eof"
NO_EOF: Final = "EOF, the object format, is in no fork"

# Kind, and members of which its tests have all; the first that fits is meant.
_MEMBERS: Final = (
    ("engine", ("engineNewPayloads",)),
    ("blockchain", ("blocks", "genesisBlockHeader")),
    ("state", ("post", "transaction", "env")),
    ("transaction", ("txbytes", "result")),
    ("vm", ("exec", "env")),
    ("trie", ("in", "root")),
    ("trie", ("in", "tests")),
    ("rlp", ("in", "out")),
    (EOF_FORMAT, ("vectors",)),
)


def kind_of(name: str, content: Any) -> str | None:
    """The kind of a decoded file's tests, None if it is none that is known.

    By its first test, or by the name where the tests of several files look alike.
    """
    if basic.is_known(name) or "" in skips_of(name):
        return "basic"
    if isinstance(content, Mapping):
        if is_index(content):
            return INDEX
        first = next(iter(content.values()), None)
        if isinstance(first, Mapping):
            found = (kind for kind, members in _MEMBERS if all(key in first for key in members))
            return next(found, "difficulty" if has_difficulties(first) else None)
    if isinstance(content, Sequence) and content and isinstance(content[0], Mapping):
        return "precompile" if "Input" in content[0] else None
    return None


def is_index(content: Mapping[str, Any]) -> bool:
    """Whether a file lists the tests of others, or is a state that several of them share."""
    return "test_cases" in content or "testIds" in content


def has_difficulties(test: Mapping[str, Any]) -> bool:
    """Whether a test is a vector of a difficulty, or maps forks to such vectors by name."""
    groups = (group for key, group in test.items() if key != "_info" and isinstance(group, Mapping))
    first: Any = next((vector for group in groups for vector in group.values()), None)
    return difficulty.is_vector(test) or difficulty.is_vector(first)


def only(kind: str) -> Suite:
    """The suite of a kind; it passes over files that are of another one."""
    return partial(_cases_of, (kind,))


def _cases_of(kinds: tuple[str, ...], name: str, content: Any) -> Iterable[Case]:
    kind = kind_of(name, content)
    if kind == EOF_FORMAT and len(kinds) > 1:
        return [(title, None, set_apart) for title in content]
    if kind is None and len(kinds) == 1:
        kind = kinds[0]  # its suite says what is wrong with it
    if kind is None and content:
        raise ValueError("no kind of test that is known here")
    return SUITES[kind][0](name, content) if kind in kinds else ()


def set_apart() -> Apart:
    """The reason that is printed for tests of EOF."""
    return Apart(NO_EOF)


EVERY = partial(_cases_of, tuple(SUITES))
"""The suite that takes all kinds."""
