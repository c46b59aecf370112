"""Tests how the explorer estimates the slice interval from arrivals of slices and block times."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import fastevm.rpc.explorer as explorer
from tests.max_wait import MAX_WAIT

ASSETS = Path(explorer.__file__).resolve().parent / "assets"
ARRIVALS = 13
# Milliseconds by which slices arrive early or late.
JITTER = (0, 9, -7, 4, -3)

SHOW = """
globalThis.document = { querySelector: () => ({ content: "" }) };
globalThis.location = new URL("http://localhost/");
const { intervalOf } = await import(ASSETS + "/live.js");
console.log(JSON.stringify(CASES.map((given) => intervalOf(...given))));
process.exit();
"""

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")


def arrivals(interval: float, number: int = ARRIVALS) -> list[float]:
    return [i * interval + JITTER[i % len(JITTER)] for i in range(number)]


def test_the_interval_follows_the_arrival_of_slices(tmp_path: Path) -> None:
    for path in ASSETS.glob("*.js"):
        shutil.copy(path, tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    slow_block = 12_000 / 70
    cases = [
        ([arrivals(200), None, 1_000 / 6], 200),  # block timestamps run ahead of the clock
        ([arrivals(200), None, 2_000 / 9], 200),  # a slice arrived late
        ([arrivals(200), None, 0], 200),  # the block time is not known
        ([arrivals(slow_block), None, slow_block], slow_block),
        ([arrivals(250), 200, 250], 250),  # the interval was 200 ms before
        ([arrivals(210), 200, 0], 200),  # slices arrive late because the machine is busy
        ([arrivals(20, number=5), None, 20], None),  # too few slices for an estimate
    ]
    constants = f"const ASSETS = {json.dumps(tmp_path.as_uri())}, CASES = "
    ran = subprocess.run(
        ["node", "--input-type=module", "-"],
        input=constants + json.dumps([given for given, _ in cases]) + ";" + SHOW,
        capture_output=True, text=True, timeout=MAX_WAIT, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-1_000:]
    assert json.loads(ran.stdout) == [pytest.approx(expected) for _, expected in cases]
