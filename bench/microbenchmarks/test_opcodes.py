"""Times loops over one kind of opcode, whose instructions guard.py counts (pytest-benchmark)."""

import pytest

from fastevm.bench.programs.loops import GUARDED


@pytest.mark.parametrize("program", GUARDED, ids=[program.name for program in GUARDED])
def test_program(benchmark, program):
    assert benchmark(program.call()).success
