"""Cython compiles every module without a warning or a performance hint."""

import os
import subprocess
import sys
from pathlib import Path

from .sources import ROOT

SCRIPT = """
import sys, runpy, setuptools
setuptools.setup = lambda **kwargs: None
sys.argv = ["setup.py"]
import Cython.Build, Cython.Build.Dependencies
original = Cython.Build.cythonize
def forced(modules, **kwargs):
    kwargs.update(force=True, build_dir=OUT)
    return original(modules, **kwargs)
Cython.Build.cythonize = forced
runpy.run_path("setup.py", run_name="__main__")
"""


def test_no_warning_and_no_performance_hint(tmp_path: Path) -> None:
    options = {"ONLY": "", "TESTING": "1", "DEBUG": "", "SANITIZE": ""}
    env = os.environ | {f"FASTEVM_{name}": value for name, value in options.items()}
    done = subprocess.run(
        [sys.executable, "-c", f"OUT = {str(tmp_path)!r}\n{SCRIPT}"],
        cwd=ROOT, env=env, capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip
    output = done.stdout + done.stderr
    assert done.returncode == 0, output[-4000:]
    hints = [line for line in output.splitlines() if "performance hint" in line]
    warnings = [line for line in output.splitlines() if line.startswith("warning:")]
    assert not hints, "\n".join(hints)
    assert not warnings, "\n".join(warnings)
