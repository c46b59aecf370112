"""Tests the values of FASTEVM_SIMD."""

import os
import subprocess
import sys

import pytest

from fastevm.core.primitives.processor import simd_allowed
from tests.max_wait import MAX_WAIT
from tests.shared_data import ROOT


@pytest.mark.parametrize("word", ["", "on", "ON", "1", "yes"])
def test_words_that_allow_newer_code(word: str) -> None:
    assert simd_allowed(word)


@pytest.mark.parametrize("word", ["off", "OFF", "Off", "0", "no", " off "])
def test_words_that_leave_code_for_all_processors(word: str) -> None:
    assert not simd_allowed(word)


def test_another_word_is_refused_by_name() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import fastevm.evm.machine"],
        cwd=ROOT, env=os.environ | {"FASTEVM_SIMD": "of"},
        capture_output=True, text=True, timeout=MAX_WAIT, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "invalid FASTEVM_SIMD 'of': expected on (1, yes) or off (0, no)" in done.stderr


@pytest.mark.parametrize("module", ["fastevm", "fastevm.rpc"])
def test_a_command_says_another_word_in_one_line(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", module, *(("node",) if module == "fastevm" else ())],
        cwd=ROOT, env=os.environ | {"FASTEVM_SIMD": "word"},
        capture_output=True, text=True, timeout=MAX_WAIT, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    text = "invalid FASTEVM_SIMD 'word': expected on (1, yes) or off (0, no)"
    assert done.stderr == f"fastevm: {text}\n"
