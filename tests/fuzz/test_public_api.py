"""Runs the fuzzer of the public API briefly, in a separate process that must exit with 0."""

import os
import random
import subprocess
import sys

from tests.shared_data import ROOT

# sequences, which take about half a minute in CI
SEQUENCES = int(os.environ.get("FASTEVM_API_SEQUENCES", "8000" if os.environ.get("CI") else "2000"))
SECONDS = 600


def test_no_sequence_of_calls_ends_the_process() -> None:
    seed = random.randrange(2**31)
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-m", "tests.fuzz.public_api",
         "--sequences", str(SEQUENCES), "--seed", str(seed)],
        cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"seed {seed}: {done.stdout[-200:]} {done.stderr[-4000:]}"
