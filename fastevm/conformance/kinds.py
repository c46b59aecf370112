"""Detects the kind of the tests in a file from the members, so the folder layout does not
matter.
"""

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
    "blockchain": (blockchain.cases, "blocks imported on a genesis state"),
    "engine": (engine.cases, "blocks delivered through engine_newPayload"),
    "transaction": (transaction.cases, "valid and invalid encoded transactions"),
    "trie": (trie.cases, "roots of tries"),
    "rlp": (rlp.cases, "valid and invalid RLP"),
    "difficulty": (difficulty.cases, "difficulty from the parent block"),
    "basic": (basic.cases, "keys, signatures, genesis blocks, proof of work"),
    "vm": (vm.cases, "one message frame under Frontier rules"),
    "precompile": (precompile.cases, "input, output and gas of precompiled contracts"),
}
"""The runner and a description of each kind of tests, by kind."""

INDEX: Final = "index"
"""The kind of files that only describe other files, such as the index of a release."""

EOF_FORMAT: Final = "eof"
NO_EOF: Final = "EOF (EVM object format) is not part of any fork"

# Kind, and the members that all its tests have; the first match counts.
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
    """Returns the kind of tests of a decoded file, or None if unknown.

    Uses the first test, or the file name if the tests of several kinds look alike.
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
    """Returns whether a file has no tests: an index of files, or a state that several tests
    share.
    """
    return "test_cases" in content or "testIds" in content


def has_difficulties(test: Mapping[str, Any]) -> bool:
    """Returns whether a test is a difficulty vector, or maps fork names to such vectors."""
    groups = (group for key, group in test.items() if key != "_info" and isinstance(group, Mapping))
    first: Any = next((vector for group in groups for vector in group.values()), None)
    return difficulty.is_vector(test) or difficulty.is_vector(first)


def only(kind: str) -> Suite:
    """Returns a suite that runs one kind of tests and ignores files of other kinds."""
    return partial(_cases_of, (kind,))


def _cases_of(kinds: tuple[str, ...], name: str, content: Any) -> Iterable[Case]:
    kind = kind_of(name, content)
    if kind == EOF_FORMAT and len(kinds) > 1:
        return [(title, None, set_apart) for title in content]
    if kind is None and len(kinds) == 1:
        kind = kinds[0]  # the reader of this kind then reports the error
    if kind is None and content:
        raise ValueError("unknown kind of tests")
    return SUITES[kind][0](name, content) if kind in kinds else ()


def set_apart() -> Apart:
    """Returns the reason for not counting tests of EOF."""
    return Apart(NO_EOF)


EVERY = partial(_cases_of, tuple(SUITES))
"""The suite for all kinds."""
