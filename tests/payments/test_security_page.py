"""Tests that every test that SECURITY.md names exists."""

import re

from tests.shared_data import ROOT

PAGE = (ROOT / "fastevm/payments/SECURITY.md").read_text()
NAME = re.compile(r"`(test_\w+)`")


def test_every_named_test_exists() -> None:
    folders = (ROOT / "tests/payments", ROOT / "tests/unit/payments", ROOT / "tests/tidy")
    files = [path for folder in folders for path in folder.rglob("test_*.py")]
    known = {path.stem for path in files}
    for path in files:
        known |= set(re.findall(r"def (test_\w+)", path.read_text()))
    named = set(NAME.findall(PAGE))
    assert len(named) > 40
    assert named <= known, sorted(named - known)
