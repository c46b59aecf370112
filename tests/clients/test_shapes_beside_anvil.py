"""Every method that anvil has answers in its shape, or a list says why it does not."""

import shutil

import pytest

from tests.anvil import anvil_or_skip
from tests.ecosystem.development.shapes import surprises


@pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm, which brings anvil")
def test_answers_have_the_shapes_of_anvil_or_a_reason() -> None:
    anvil_or_skip()
    assert surprises() == []
