"""Runs samples of real blocks and recorded traces.

``fastevm conformance real`` runs all of them.
"""

from pathlib import Path

import pytest

from fastevm.__main__ import main
from fastevm.conformance.real import run_archive
from fastevm.conformance.real_sources import RECORDINGS
from tests.shared_data import REAL_BLOCKS

SAMPLED = {
    "op_blocks": 8,
    "pevm": 12,
    "rpc_traces": 1 + 4 * 125 - 3,
    "chains": 0,
}
"""Archive -> number of cases in its first files, which are run."""


@pytest.mark.parametrize(("archive", "files"), [("op_blocks", 8), ("pevm", 12), ("rpc_traces", 1)])
def test_the_first_blocks_of_an_archive_give_what_their_headers_say(
    archive: str, files: int
) -> None:
    tally = run_archive(REAL_BLOCKS.required, archive, most=files)
    assert (tally.passed, tally.failed, tally.skipped) == (SAMPLED[archive], 0, 0)


def test_recorded_traces_are_the_same_json_or_of_a_tracer_that_is_not_here() -> None:
    tally = run_archive(REAL_BLOCKS.required, RECORDINGS)
    assert (tally.failed, tally.skipped) == (0, 0)
    assert tally.passed + sum(tally.apart.values()) == 97


def test_a_folder_without_readers_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["conformance", "real", str(tmp_path)]) == 2
    assert "has no readers for its data" in capsys.readouterr().err
