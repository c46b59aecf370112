"""Tests message sequences between a snapshot and its revert, on pyrevm's interface and on EVM."""

from fastevm.integrations import pyrevm
from tests.ecosystem.message_speed import ACTORS, CONTRACT, MESSAGES, ByNames, Direct, invariant


def test_both_ways_give_the_same_outputs_and_storage() -> None:
    by_names, direct = ByNames(pyrevm), Direct()
    for code, data, _ in MESSAGES.values():
        by_names.code(code)
        direct.code(code)
        result = direct.evm.call(CONTRACT, data, sender=ACTORS[0], commit=True)
        assert by_names.send(ACTORS[0], data) == result.output
        state = by_names.evm._evm.state
        assert state.storage_items(CONTRACT) == direct.evm.state.storage_items(CONTRACT)


def test_runs_leave_nothing_behind() -> None:
    for engine in (ByNames(pyrevm), Direct()):
        invariant(engine, 100)
        machine = engine.evm if isinstance(engine, Direct) else engine.evm._evm
        assert machine.state.storage_items(CONTRACT) == {}
