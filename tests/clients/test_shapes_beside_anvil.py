"""Tests that every method of anvil has a result of anvil's shape, except for listed differences."""

import shutil

import pytest

from tests.anvil import anvil_or_skip
from tests.ecosystem.development.shapes import surprises


@pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm, which brings anvil")
def test_answers_have_the_shapes_of_anvil_or_a_reason() -> None:
    anvil_or_skip()
    assert surprises() == []
