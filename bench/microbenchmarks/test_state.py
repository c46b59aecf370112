"""Times reads, writes, snapshots and roots on states of several sizes (pytest-benchmark)."""

from functools import partial

import pytest

import fastevm
from fastevm.bench.engines.state_growth import layer_with, visit
from fastevm.bench.programs.loops import CALLER, GAS, HELPER, PROGRAM

SIZES = [2**10, 2**14, 2**17]
TOUCHED = 200


@pytest.fixture(scope="module", params=SIZES)
def sized(request):
    layer = layer_with(request.param)
    layer.state_root()
    return request.param, layer


def machine_over(layer):
    return fastevm.EVM("cancun", state=layer, gas_limit=GAS)


def test_random_reads(benchmark, sized):
    slots, layer = sized
    machine = machine_over(layer)
    found = benchmark(partial(machine.call, PROGRAM, visit(TOUCHED, slots, 7), gas=GAS))
    assert found.success


def test_random_writes(benchmark, sized):
    slots, layer = sized
    machine = machine_over(layer)

    def write():
        machine.state = layer
        return machine.transact(HELPER, visit(TOUCHED, slots, 7), sender=CALLER, gas=GAS)

    assert benchmark(write).success


def test_the_root_after_random_writes(benchmark, sized):
    slots, layer = sized
    machine = machine_over(layer)

    def written():
        machine.state = layer
        machine.transact(HELPER, visit(TOUCHED, slots, 7), sender=CALLER, gas=GAS)
        return (machine.state,), {}

    root = benchmark.pedantic(fastevm.Layer.state_root, setup=written, rounds=20)
    assert root != layer.state_root()


def test_a_snapshot_and_back(benchmark, sized):
    machine = machine_over(sized[1])
    benchmark(lambda: machine.revert(machine.snapshot()))
