"""Tests stateful property tests: seeded bugs, isolation, reproduction files."""

import json
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.errors import HypothesisException
from hypothesis.stateful import invariant, rule, run_state_machine_as_test

from fastevm import Contract
from fastevm.integrations.chain_control import Chain
from fastevm.integrations.hypothesis import ChainStateMachine, EvmStateMachine, uints
from fastevm.integrations.recording import RecordedEVM
from fastevm.integrations.reproduction import ReproductionError, read, replay, replay_chain, run
from tests.properties.build import main as build
from tests.properties.machines import MACHINES
from tests.properties.seeded_bugs import SEARCH, find, options

COUNTER, USER, BRANCHES = "0x" + "c0" * 20, "0x" + "a1" * 20, "0x" + "d0" * 20
CODE = "0x5f54600101805f555f5260205ff3"  # adds one to slot 0 and returns it


def fails(machine: type[Any], **changes: Any) -> None:
    """Runs a Hypothesis state machine and asserts that it finds a failure."""
    chosen: dict[str, Any] = {
        "max_examples": 30, "deadline": None, "database": None, "derandomize": True,
        "suppress_health_check": list(HealthCheck), "phases": (*SEARCH, Phase.shrink),
    } | changes  # fmt: skip
    with pytest.raises(AssertionError):
        run_state_machine_as_test(machine, settings=settings(**chosen))


@pytest.mark.parametrize("bug", MACHINES)
def test_a_seeded_bug_is_found(bug: str) -> None:
    assert find(MACHINES[bug], options(SEARCH, derandomize=True), None) is not None


def test_contracts_are_those_of_their_sources() -> None:
    found = build(["--check"])
    if found == 2:
        pytest.skip("needs node and the npm package solc")
    assert found == 0


class Counting(EvmStateMachine):
    """A state machine with a counter. It changes its block and accounts."""

    counter: ClassVar[Contract]
    deployments: ClassVar[int] = 0
    limit: ClassVar[int] = 3

    @classmethod
    def deploy(cls, evm: RecordedEVM) -> None:
        evm.set_code(COUNTER, CODE)
        evm.set_balance(USER, 10**30)
        cls.counter = Contract(evm, ["function count() returns (uint256)"], COUNTER)
        cls.deployments += 1

    def __init__(self) -> None:
        super().__init__()
        assert self.evm.storage(COUNTER, 0) == 0 and self.evm.block.timestamp == 1
        assert self.evm.balance(USER) == 10**30

    @rule(times=st.integers(1, 2))
    def count(self, times: int) -> None:
        for _ in range(times):
            self.counter.count()
        self.evm.set_block(timestamp=self.evm.block.timestamp + 1)
        self.evm.set_balance(USER, 7 << 200)

    @rule()
    def send(self) -> None:
        self.evm.transact(COUNTER, b"\x01", sender=USER, trace="calls")

    @invariant()
    def small(self) -> None:
        assert self.evm.storage(COUNTER, 0) < self.limit


def test_examples_are_isolated_and_a_failure_becomes_a_file(tmp_path: Path) -> None:
    class Local(Counting):
        reproductions = tmp_path / "new"

    fails(Local)
    assert Local.deployments == 1
    path = only(tmp_path / "new")
    found = read(path)
    assert found.warning == "" and "AssertionError" in found.failure
    assert found.test.endswith("Local") and found.fork == "Osaka"
    assert replay(path).storage(COUNTER, 0) == 3
    lines: list[str] = []
    replay(path, show=lines.append)
    assert len(lines) == len(found.steps) and any("Contract.count" in line for line in lines)


def test_a_file_needs_nothing_but_itself(tmp_path: Path, capsys: Any) -> None:
    class Local(Counting):
        reproductions = tmp_path

    fails(Local)
    path = only(tmp_path)
    assert run(argument(path)) == 0
    assert "reproduced: AssertionError" in capsys.readouterr().out
    content = json.loads(path.read_text())
    assert set(content["state"]) >= {COUNTER}
    content["state"][COUNTER]["code"] = "0xfe"
    path.write_text(json.dumps(content))
    assert run(argument(path)) == 1
    assert "differs: step 1" in capsys.readouterr().out
    with pytest.raises(ReproductionError, match="step 1"):
        replay(path)


def only(folder: Path) -> Path:
    """Returns the only file of a folder."""
    (found,) = folder.iterdir()
    return found


def argument(path: Path) -> Any:
    from argparse import Namespace

    return Namespace(file=path, fork_url=None)


@pytest.mark.parametrize("text", ["", "[]", '{"format": 2}', '{"steps": 1}', "[" * 3_000])
def test_other_files_are_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(ReproductionError, match=r"x\.json"):
        read(path)


def test_a_step_calls_only_methods_that_are_recorded(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"fork": "osaka", "steps": [{"method": "__reduce__"}]}))
    with pytest.raises(ReproductionError, match="unknown method '__reduce__'"):
        replay(path)


def test_a_revert_of_the_test_begins_a_new_recording(tmp_path: Path) -> None:
    class Local(Counting):
        reproductions = tmp_path

        @rule()
        def count(self, times: int = 1) -> None:  # type: ignore[override]
            with self.evm.snapshot():
                self.evm.call(COUNTER, commit=True)
            self.counter.count()

    fails(Local)
    path = only(tmp_path)
    assert read(path).warning == "" and replay(path).storage(COUNTER, 0) == 3


def test_precompiles_in_python_are_named(tmp_path: Path) -> None:
    address = "0x" + "99" * 20

    class Local(Counting):
        limit = 10**9
        reproductions = tmp_path

        @classmethod
        def deploy(cls, evm: RecordedEVM) -> None:
            super().deploy(evm)
            evm.precompiles[address] = lambda data, gas: b"\x05"

        @rule()
        def ask(self) -> None:
            assert self.evm.call(address).output != b"\x05"

    fails(Local)
    path = only(tmp_path)
    assert address in read(path).warning
    with pytest.raises(ReproductionError):
        replay(path)
    replay(path, precompiles={address: lambda data, gas: b"\x05"})


def test_each_failure_has_a_file(tmp_path: Path) -> None:
    class Local(Counting):
        reproductions = tmp_path

        @rule()
        def other(self) -> None:
            raise AssertionError("another failure")

    with pytest.raises(BaseExceptionGroup):
        run_state_machine_as_test(
            Local, settings=options((*SEARCH, Phase.shrink), derandomize=True)
        )
    files = sorted(tmp_path.iterdir(), key=lambda path: len(read(path).steps))
    assert [len(read(path).steps) > 0 for path in files] == [False, True]
    assert "another failure" in read(files[0]).failure


def test_a_score_counts_branches() -> None:
    scores = []

    class Local(Counting):
        limit = 10**9
        reproductions = None

        @classmethod
        def deploy(cls, evm: RecordedEVM) -> None:
            super().deploy(evm)
            evm.set_code(BRANCHES, "0x5f3515600757005b5b00")

        @rule(data=st.sampled_from((b"", b"\x01" * 32)))
        def jump(self, data: bytes) -> None:
            self.evm.call(BRANCHES, data)

        def teardown(self) -> None:
            super().teardown()
            scores.append(self._branches())

    run_state_machine_as_test(
        Local, settings=settings(max_examples=30, database=None, derandomize=True)
    )
    assert min(scores) == 0 and max(scores) == 2


def test_an_example_that_does_not_fail_leaves_no_file(tmp_path: Path) -> None:
    class Local(Counting):
        limit = 10**9
        reproductions = tmp_path

    run_state_machine_as_test(Local, settings=settings(max_examples=5, database=None))
    assert list(tmp_path.iterdir()) == []
    assert not issubclass(ReproductionError, HypothesisException)


def test_chains_are_isolated_recorded_and_replayed(tmp_path: Path) -> None:
    class OnChain(ChainStateMachine):
        reproductions = tmp_path

        @classmethod
        def deploy(cls, chain: Chain) -> None:
            chain.set_code(COUNTER, CODE)

        def __init__(self) -> None:
            super().__init__()
            assert self.chain.height == 0 and self.value() == 0

        def value(self) -> int:
            node = self.chain.node
            return int(node.request("eth_getStorageAt", [COUNTER, "0x0", "latest"]), 16)

        @rule()
        def count(self) -> None:
            terms = {"from": self.chain.accounts[0], "to": COUNTER}
            with self.chain.anchor():
                self.chain.mine(2)
                self.chain.node.request("eth_sendTransaction", [terms])
            self.chain.node.request("eth_sendTransaction", [terms])

        @invariant()
        def small(self) -> None:
            assert self.value() < 2

    fails(OnChain, max_examples=5)
    path = only(tmp_path)
    assert read(path).warning == ""
    with replay_chain(path) as node:
        assert int(node.request("eth_getStorageAt", [COUNTER, "0x0", "latest"]), 16) == 2
    with pytest.raises(ReproductionError, match="use replay_chain"):
        replay(path)


@pytest.mark.parametrize(("bits", "below"), [(8, None), (256, None), (256, 7), (1, 1)])
def test_unsigned_integers_are_in_their_range(bits: int, below: int | None) -> None:
    strategy = uints(bits, below=below)
    end = 1 << bits if below is None else below

    class Draws(EvmStateMachine):
        seen: ClassVar[set[int]] = set()

        @rule(number=strategy)
        def draw(self, number: int) -> None:
            assert 0 <= number < end
            self.seen.add(number)

    run_state_machine_as_test(Draws, settings=settings(max_examples=100, database=None))
    assert 0 in Draws.seen and end - 1 in Draws.seen
    with pytest.raises(ValueError, match="no unsigned integer"):
        uints(below=0)
