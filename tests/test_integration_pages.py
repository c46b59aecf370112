"""Runs every Python program of the pages for users of other libraries, unchanged."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.max_wait import MAX_WAIT

from .shared_data import ROOT

PAGES = sorted((ROOT / "docs").glob("coming-from-*.md"))
PROGRAMS = [
    pytest.param(code, id=f"{page.stem} {number}")
    for page in PAGES
    for number, code in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.S), 1)
]


@pytest.mark.parametrize("code", PROGRAMS)
def test_a_program_runs_as_it_stands(code: str, tmp_path: Path) -> None:
    if code.startswith("import boa") and find_spec("boa") is None:
        pytest.skip("needs titanoboa, whose pins exclude ours")
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True,
        timeout=MAX_WAIT, env={"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
