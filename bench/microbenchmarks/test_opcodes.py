"""Times loops over one kind of opcode (pytest-benchmark). guard.py counts their instructions."""

import pytest

from fastevm.bench.programs.loops import GUARDED


@pytest.mark.parametrize("program", GUARDED, ids=[program.name for program in GUARDED])
def test_program(benchmark, program):
    assert benchmark(program.call()).success
