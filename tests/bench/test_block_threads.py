"""Tests the benchmark that executes blocks on one and on several threads."""

import pytest

from fastevm.bench import block_threads
from tests.shared_data import REAL_BLOCKS


def test_blocks_are_timed_on_one_thread_and_on_more(capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(REAL_BLOCKS.required)
    assert block_threads.main([folder, "--rounds", "1", "--above", "1200"]) == 0
    head, *rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert head[:2] == ["block", "txs"]
    assert {row[0] for row in rows} >= {"13287210", "14396881", "15274915"}
    ends = {row[0]: " ".join(row[-3:]) for row in rows}
    assert ends["15274915"].endswith("ran again")
    assert ends["13287210"] == "on one thread"  # A block of simple transfers stays on one thread.


def test_one_thread_is_nothing_to_compare_with() -> None:
    with pytest.raises(SystemExit):
        block_threads.main(["--threads", "1"])
