"""Tests that names are the common terms of the field. Replaced words must not return."""

import re
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from .sources import ROOT

TEXT = (".py", ".pyx", ".pxd", ".pyi", ".h", ".md", ".js", ".html")
OWN = "tests/tidy/test_vocabulary.py"

# Replaced word, as a regular expression -> what to write instead. Each word was ambiguous, or says
# nothing to readers who know Ethereum.
REPLACED = {
    r"\bdoors?\b": "test support, listener, public class",
    r"\bforesee\w*|\bforeseen\b": "predecode",
    r"\bpatien(ce|t)\b": "loop budget, timeout",
    r"(?<!text/)(?<!case\.)\bplain|_plain\b": "untraced, simple call, or what is meant",
    r"\bdesks?\b|_desk\b": "service",
    r"\bfates?\b": "outcome, route",
    r"\bheirs?\b": "beneficiary",
}
# File names that say too little -> better names.
NO_FILE_NAMES = {
    "behind": "lazy_app",
    "chunk": "results",
    "entry": "block_entry",
    "ground": "base_block",
    "halts": "halt_messages",
    "jobs": "plan",
    "together": "coalesce",
    "touches": "access_observer",
}


def tracked() -> list[Path]:
    """Returns the files that git tracks, or all files if there is no git repository."""
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    names = done.stdout.splitlines() if done.returncode == 0 else []
    return [ROOT / name for name in names if name != OWN and (ROOT / name).is_file()]


TRACKED = tracked()


@pytest.mark.parametrize("word", REPLACED)
def test_a_word_that_was_replaced_stays_away(word: str) -> None:
    pattern = re.compile(word, re.IGNORECASE)
    found = defaultdict(list)
    for path in TRACKED:
        if path.suffix in TEXT:
            for number, line in enumerate(path.read_text().splitlines(), 1):
                if pattern.search(line) and "http" not in line:
                    found[path.relative_to(ROOT).as_posix()].append(number)
    assert not found, f"write {REPLACED[word]} instead: {dict(found)}"


def test_files_do_not_have_names_that_were_replaced() -> None:
    for path in TRACKED:
        words = re.split(r"[_.]", path.name)
        for word in NO_FILE_NAMES:
            assert word not in words[:1] or word != path.stem, f"{path}: {NO_FILE_NAMES[word]}"
