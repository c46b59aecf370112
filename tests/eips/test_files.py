"""Tests that every EIP of a fork has a test file in this folder.

The file's docstring must begin with the EIP's number and title.
"""

import re
from pathlib import Path

import pytest

from fastevm.core.spec.forks import FORKS

HERE = Path(__file__).parent
NUMBERS = sorted({eip.number for fork in FORKS for eip in fork.all_eips} - {0})


@pytest.mark.parametrize("number", NUMBERS)
def test_an_eip_has_its_file(number):
    text = (HERE / f"test_eip_{number}.py").read_text()
    title, empty, sentence = text.split("\n", 3)[:3]
    assert re.fullmatch(rf'"""EIP-{number}: .+\.', title)
    assert empty == ""
    assert sentence
