"""Replays the corpus: the smallest cases of differences that were found earlier."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.metamorphic.relations import broken_relation

from .cases import Case
from .fuzz import CORPUS, SELF
from .judge import KNOWN, judge
from .peers import Peer

FILES = sorted(CORPUS.glob("*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_case_of_the_corpus(path: Path, peer: Callable[[str], Peer]) -> None:
    text = path.read_text()
    content = json.loads(text)
    case = Case.loads(text)
    assert broken_relation(case) is None, content["about"]
    names = [name for name, forks in KNOWN.items() if case.fork in forks]
    assert content["peer"] in (*names, SELF)
    for name in names:
        verdict = judge(peer(name), case)
        assert verdict.difference is None, f"{name}: {content['about']}"
