"""Tests erc7562Tracer against go-ethereum's recordings."""

import pytest

from .recorded import recorded, traced


@pytest.mark.parametrize("name", sorted(recorded("erc7562_tracer")))
def test_validations(name: str) -> None:
    test = recorded("erc7562_tracer")[name]
    assert traced(test, "erc7562Tracer") == test["result"]
