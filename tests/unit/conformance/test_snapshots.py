"""Tests that fixtures made for an early draft of a fork run under the rules of that draft."""

import pytest

from fastevm.conformance.snapshots import rules_meant

HERE = "https://github.com/ethereum/execution-specs/blob/"
COMMIT = "524b44617e410ab21b5122f0be5113b62a0e76ee"


@pytest.mark.parametrize(
    ("network", "url", "rules"),
    [
        ("Amsterdam", f"{HERE}{COMMIT}/tests/a.py#L1", "amsterdam-2026-04"),
        ("Amsterdam", f"{HERE}v21.0.0/tests/a.py#L1", "Amsterdam"),
        ("Prague", f"{HERE}{COMMIT}/tests/a.py#L1", "Prague"),
        ("Amsterdam", None, "Amsterdam"),
    ],
)
def test_the_commit_of_the_source_decides(network: str, url: str | None, rules: str) -> None:
    assert rules_meant(network, {"_info": {"url": url}}) == rules


def test_a_test_without_a_source_means_the_fork() -> None:
    assert rules_meant("Amsterdam", {}) == "Amsterdam"
    assert rules_meant("Amsterdam", {"_info": "none"}) == "Amsterdam"
