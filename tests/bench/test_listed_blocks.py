"""Tests that the benchmark of blocks with access lists prints a line for each block."""

from itertools import count
from types import SimpleNamespace

import pytest

from fastevm.bench import listed_blocks
from fastevm.bench.engines import on_threads
from fastevm.core.execution.parallel import bal_executor
from tests.shared_data import REAL_BLOCKS


def test_blocks_are_timed_on_one_thread_and_by_their_lists(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Every reading of the clock is a second later, so that no time depends on the machine.
    seconds = count()
    clock = SimpleNamespace(perf_counter=seconds.__next__, process_time=seconds.__next__)
    for module in (listed_blocks, on_threads):
        monkeypatch.setattr(module, "time", clock)
    before = bal_executor.counted()
    folder = str(REAL_BLOCKS.required)
    assert listed_blocks.main([folder, "--rounds", "1", "--above", "1300", "--roots"]) == 0
    head, *rows, speed, median = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert head[-1] == "bound"
    assert {row[0] for row in rows} == {"13287210", "14396881"}
    assert all(float(row[-1]) > 0 for row in rows)
    assert (speed[0], speed[2]) == ("all:", "Mgas/s")
    assert median[:3] == ["median", "share", "of"]
    # Each block is executed by its list twice: on threads, and on the calling thread alone.
    assert bal_executor.counted() == before + 2 * len(rows)


def test_one_thread_is_nothing_to_compare_with() -> None:
    with pytest.raises(SystemExit):
        listed_blocks.main(["--threads", "1"])
