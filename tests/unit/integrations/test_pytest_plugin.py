"""Tests the pytest plugin in separate sessions: fixtures, isolation, gas report."""

import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from fastevm.bench.node.launch import fastevm_node as process
from fastevm.integrations.gas_report import GasReport, read_snapshot
from tests.max_wait import MAX_WAIT
from tests.shared_data import ROOT

pytest_plugins = ["pytester"]

COUNTER = "5f54600101805f555f5260205ff3"  # adds one to slot 0 and returns it


@pytest.fixture
def session(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Provides a folder for test files. Sessions run in a separate process."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeini("[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function")
    return pytester


def run(session: pytest.Pytester, *options: str) -> pytest.RunResult:
    """Runs a session with the plugin, which it loads by name if the entry point is missing."""
    loaded = "fastevm" in session.run(sys.executable, "-m", "pytest", "--help").stdout.str()
    by_name = () if loaded else ("-p", "fastevm.integrations.pytest_plugin")
    return session.runpytest_subprocess(*by_name, *options, timeout=MAX_WAIT)


def test_every_fixture_is_there_and_each_test_begins_anew(session: pytest.Pytester) -> None:
    session.makepyfile(f"""
        import pytest

        CONTRACT = "0x" + "c0" * 20

        @pytest.mark.parametrize("turn", range(2))
        def test_a_payment(w3, accounts, chain, turn):
            before = w3.eth.get_balance(accounts[1])
            assert before == 10_000 * 10**18
            w3.eth.send_transaction({{"to": accounts[1], "value": 5}})
            assert w3.eth.get_balance(accounts[1]) == before + 5
            assert chain.height == 1
            assert len(accounts[1].key) == 66

        @pytest.mark.parametrize("turn", range(2))
        def test_a_machine(evm, turn):
            assert evm.code(CONTRACT) == b""
            evm.set_account(CONTRACT, code="0x{COUNTER}")
            evm.set_account("0x" + "a1" * 20, balance=10**18)
            assert evm.transact(CONTRACT, sender="0x" + "a1" * 20).success
            assert evm.storage(CONTRACT, 0) == 1

        @pytest.mark.parametrize("turn", range(2))
        def test_cheats(evm, cheats, turn):
            assert evm.block.timestamp == 1 and evm.balance(CONTRACT) == 0
            cheats.warp(99)
            cheats.deal(CONTRACT, 5)
            assert evm.block.timestamp == 99 and evm.balance(CONTRACT) == 5

        @pytest.mark.parametrize("turn", range(2))
        def test_control(chain, fastevm_node, turn):
            assert chain.height == 0
            chain.set_balance(CONTRACT, 7)
            chain.set_code(CONTRACT, bytes.fromhex("{COUNTER}"))
            chain.set_storage(CONTRACT, 0, 41)
            chain.set_nonce(CONTRACT, 3)
            call = {{"to": CONTRACT}}
            assert int(fastevm_node.request("eth_call", [call, "latest"]), 16) == 42
            with chain.anchor():
                assert chain.mine(5) == 5
            assert chain.height == 0
            now = chain.timestamp
            assert chain.sleep(1000) >= now + 1000
            assert chain.time_travel(now + 5000) == now + 5000
            with chain.impersonate(CONTRACT):
                chain.set_balance(CONTRACT, 10**18)
                fastevm_node.request(
                    "eth_sendTransaction", [{{"from": CONTRACT, "to": "0x" + "b0" * 20}}]
                )
    """)
    run(session).assert_outcomes(passed=8)


def test_what_a_fixture_did_lives_as_long_as_its_scope(session: pytest.Pytester) -> None:
    session.makeconftest("""
        import pytest

        @pytest.fixture(scope="session")
        def everywhere(chain):
            chain.set_balance("0x" + "e1" * 20, 1)
            return "0x" + "e1" * 20
    """)
    module = """
        import pytest

        @pytest.fixture(scope="module")
        def here(chain):
            before = chain_balance(chain, "e2")  # stays where a wider fixture comes later
            chain.set_balance("0x" + "e2" * 20, before + 1)
            return before + 1

        @pytest.fixture(scope="class")
        def inside(chain):
            chain.set_balance("0x" + "e3" * 20, chain_balance(chain, "e3") + 1)

        def chain_balance(chain, name):
            address = "0x" + name * 20
            return int(chain.node.request("eth_getBalance", [address, "latest"]), 16)

        def test_before_the_wide_one(chain, here):
            assert chain_balance(chain, "e2") == here
            chain.set_balance("0x" + "e2" * 20, 100)

        def test_a_wide_one_that_comes_late(chain, here, everywhere):
            assert chain_balance(chain, "e1") == 1
            assert chain_balance(chain, "e2") == here
            chain.set_balance(everywhere, 100)

        class TestOfAClass:
            def test_one(self, chain, here, inside, everywhere):
                assert chain_balance(chain, "e3") == chain_balance(chain, "e1") == 1

            def test_two(self, chain, here, inside):
                assert chain_balance(chain, "e3") == 1
                chain.set_balance("0x" + "e3" * 20, 100)

        def test_after_the_class(chain, everywhere):
            assert chain_balance(chain, "e3") == 0
            assert chain_balance(chain, "e1") == 1
    """
    session.makepyfile(test_first=module, test_second=module)
    run(session).assert_outcomes(passed=10)


def test_each_example_of_a_property_begins_anew(session: pytest.Pytester) -> None:
    session.makepyfile(f"""
        from hypothesis import given, settings, strategies as st

        CONTRACT, SENDER = "0x" + "c0" * 20, "0x" + "a1" * 20

        @given(st.integers(1, 3))
        @settings(max_examples=8, deadline=None)
        def test_a_machine(evm, times):
            assert evm.storage(CONTRACT, 0) == 0
            evm.set_account(CONTRACT, code="0x{COUNTER}")
            evm.set_account(SENDER, balance=10**18)
            for _ in range(times):
                evm.transact(CONTRACT, sender=SENDER)
            assert evm.storage(CONTRACT, 0) == times

        @given(st.integers(1, 3))
        @settings(max_examples=8, deadline=None)
        def test_a_chain(chain, blocks):
            assert chain.height == 0
            assert chain.mine(blocks) == blocks

        @given(st.integers(1, 3))
        @settings(max_examples=8, deadline=None)
        async def test_a_coroutine(chain, blocks):
            assert chain.height == 0
            assert chain.mine(blocks) == blocks
    """)
    run(session).assert_outcomes(passed=3)


def test_a_marked_test_is_not_undone(session: pytest.Pytester) -> None:
    session.makepyfile("""
        import pytest

        @pytest.mark.fastevm_no_isolation
        def test_one(chain):
            chain.mine(3)

        def test_two(chain):
            assert chain.height == 3
            chain.mine()

        def test_three(chain):
            assert chain.height == 3
    """)
    run(session, "--strict-markers").assert_outcomes(passed=3)


def test_options_of_the_node_may_be_overridden(session: pytest.Pytester) -> None:
    session.makeconftest("""
        import pytest

        @pytest.fixture(scope="session")
        def fastevm_options():
            return {"chain_id": 77, "accounts": 2}
    """)
    session.makepyfile("""
        def test_it(w3, chain, accounts):
            assert w3.eth.chain_id == chain.id == 77
            assert len(accounts) == 2
    """)
    run(session).assert_outcomes(passed=1)


def test_the_gas_report_names_contracts_and_functions(session: pytest.Pytester) -> None:
    session.makepyfile(f"""
        ABI = [{{"type": "function", "name": "add", "inputs": [
            {{"type": "tuple", "components": [{{"type": "uint8"}}, {{"type": "address[]"}}]}},
        ]}}]
        CONTRACT = "0x" + "11" * 20

        def test_it(w3, chain, accounts):
            chain.set_code(CONTRACT, "0x{COUNTER}")
            chain.label(CONTRACT, "Counter", ABI)
            for data in ("0x", "0xffffffff", "0x4c5a9a4d"):
                w3.eth.send_transaction({{"to": CONTRACT, "data": data}})
            w3.eth.send_transaction({{"to": accounts[1], "value": 1}})
            w3.eth.send_transaction({{"data": "0x60015ff3"}})
    """)
    result = run(session, "--fastevm-gas-report")
    result.assert_outcomes(passed=1)
    text = result.stdout.str()
    assert "contract" in text
    assert re.search(r"Counter +0xffffffff +1 +\d+", text)
    assert re.search(r"Counter +\(payment\) +1 +43", text)
    assert re.search(r"0x\w{40} +\(payment\) +1 +21000 +21000 +21000 +21000", text)
    assert re.search(r"0x\w{40} +\(creation\) +1 +53", text)


def test_selectors_follow_tuples() -> None:
    from fastevm.integrations.chain_control import selectors

    transfer = {
        "type": "function",
        "name": "transfer",
        "inputs": [{"type": "address"}, {"type": "uint256"}],
    }
    multicall = {
        "type": "function",
        "name": "aggregate3",
        "inputs": [
            {
                "type": "tuple[]",
                "components": [{"type": "address"}, {"type": "bool"}, {"type": "bytes"}],
            }
        ],
    }
    assert selectors([transfer, multicall, {"type": "event", "name": "Transfer"}]) == {
        "0xa9059cbb": "transfer",
        "0x82ad56cb": "aggregate3",
    }


def test_a_fork_begins_at_its_block_and_is_undone_too(session: pytest.Pytester) -> None:
    session.makepyfile("""
        import os
        import pytest

        @pytest.mark.parametrize("turn", range(2))
        def test_it(fork, turn):
            chain = fork(os.environ["UPSTREAM"], 2)
            assert chain.height == 2
            assert chain is fork(os.environ["UPSTREAM"], 2)
            chain.mine()

        def test_the_node_itself(chain):
            assert chain.height == 3
    """)
    upstream = process(module=("fastevm", "dev"))
    upstream.start()
    try:
        upstream.ask("anvil_mine", "0x3")
        session._monkeypatch.setenv("UPSTREAM", upstream.url)
        run(session, "--fastevm-fork-url", upstream.url).assert_outcomes(passed=3)
    finally:
        upstream.stop()


def test_nothing_heavy_is_loaded_for_tests_that_want_nothing() -> None:
    program = (
        "import sys, fastevm.integrations.pytest_plugin;"
        "print([n for n in sys.modules if n.startswith(('fastevm.rpc', 'fastevm.evm', 'web3'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert done.stdout == "[]\n"


# The ABI has two functions: a() writes a slot, and b() reverts.
RUNTIME = "5f3560e01c630dbe671f146011575f5ffd5b60015f5500"
ARTIFACT = {
    "contractName": "Pair",
    "abi": [{"type": "function", "name": name, "inputs": [], "outputs": []} for name in "ab"],
    "bytecode": "0x60178060095f395ff3" + RUNTIME,
    "source_map_runtime": {
        "pc_pos_map": {
            "0": [1, 0, 1, 1],
            "14": [9, 0, 9, 1],
            "17": [3, 0, 3, 1],
            "21": [4, 0, 4, 1],
        }
    },
}


def test_coverage_is_reported_by_function_and_line(session: pytest.Pytester) -> None:
    session.makepyfile(f"""
        from fastevm import contract

        ARTIFACT = {ARTIFACT!r}

        def test_a_machine(evm):
            pair = contract(ARTIFACT).deploy(evm)
            assert pair.a() is None
            assert pair.a.call(trace="calls").result.trace["type"] == "CALL"
            evm.set_code("0x" + "c0" * 20, "0x{COUNTER}")
            assert evm.call("0x" + "c0" * 20).trace is None
            assert set(evm.call("0x" + "c0" * 20, trace=("gas",)).trace) == {{"gas"}}
    """)
    result = run(session, "--fastevm-coverage")
    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines(
        [
            r".*contracts covered.*",
            r"contract +functions +lines +not reached",
            r"0xc0c0\w+ +12 of 12 \(100 %\) instructions",
            r"Pair +1 of 2 +3 of 4 \(75 %\) +b; lines 9$",
        ]
    )


def test_a_simulation_on_a_machine_is_covered(session: pytest.Pytester) -> None:
    session.makepyfile("""
        from fastevm import simulate

        def test_a_simulation(evm):
            evm.set_code("0x" + "c0" * 20, "0x5f35600657005b60015f55")
            here, there = "0x" + "c0" * 20, "0x" + "d0" * 20
            put = {there: {"code": "0x5f545f5260205ff3", "stateDiff": {}}}
            word = "0x" + "00" * 31 + "01"
            first, second = simulate(evm, {"blockStateCalls": [
                {"calls": [{"to": here, "input": word}]},
                {"stateOverrides": put, "calls": [{"to": there}]},
            ]})
            assert first.calls[0].success and second.calls[0].success
    """)
    result = run(session, "--fastevm-coverage")
    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines(
        [r"0xc0c0\w+ +8 of 9 \(88 %\) instructions", r"0xd0d0\w+ +7 instructions"]
    )


def test_transactions_and_calls_of_a_chain_are_covered(session: pytest.Pytester) -> None:
    session.makepyfile(f"""
        import pytest

        ARTIFACT = {ARTIFACT!r}

        def deployed(w3, chain):
            sent = w3.eth.send_transaction({{"data": ARTIFACT["bytecode"]}})
            address = w3.eth.get_transaction_receipt(sent)["contractAddress"]
            chain.label(address, "Pair", ARTIFACT)
            return address

        def test_a_transaction(w3, chain):
            w3.eth.send_transaction({{"to": deployed(w3, chain), "data": "0x0dbe671f"}})

        def test_a_call_that_reverts(w3, chain):
            with pytest.raises(Exception, match="reverted"):
                w3.eth.call({{"to": deployed(w3, chain), "data": "0x4df7e3d0"}})
    """)
    result = run(session, "--fastevm-coverage", "-k", "a_transaction")
    result.stdout.re_match_lines([r"Pair +1 of 2 +3 of 4 \(75 %\) +b; lines 9$"])
    result = run(session, "--fastevm-coverage", "-k", "reverts")
    result.stdout.re_match_lines([r"Pair +1 of 2 +2 of 4 \(50 %\) +a; lines 3-4$"])
    result = run(session, "--fastevm-coverage", "--fastevm-gas-report")
    result.assert_outcomes(passed=2)
    result.stdout.re_match_lines([r".*gas used.*", r"Pair +2 of 2 +4 of 4 \(100 %\)$"])


def test_covered_lines_are_written_for_other_tools(session: pytest.Pytester) -> None:
    session.makepyfile(f"""
        from fastevm import contract

        ARTIFACT = {ARTIFACT!r}

        def test_a_machine(evm):
            assert contract(ARTIFACT).deploy(evm).a() is None
    """)
    result = run(session, "--fastevm-coverage-lcov", "lcov.info")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*contracts covered*")
    head, file, *lines = (session.path / "lcov.info").read_text().splitlines()
    assert (head, file[:3]) == ("TN:", "SF:")
    assert lines == ["DA:1,1", "DA:3,1", "DA:4,1", "DA:9,0", "LF:4", "LH:3", "end_of_record"]


PAYMENT = """
    def test_a_payment(w3, accounts):
        w3.eth.send_transaction({"to": accounts[1], "value": 5, "data": "DATA"})
"""
PAYEE = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"


def test_a_change_of_gas_fails_the_session(session: pytest.Pytester) -> None:
    session.makepyfile(PAYMENT.replace("DATA", "0xa1b2c3d4"))
    result = run(session, "--fastevm-gas-snapshot", "gas.json")
    result.assert_outcomes(passed=1)
    saved = json.loads((session.path / "gas.json").read_text())
    ((payee, gas),) = saved.items()
    assert payee.lower() == PAYEE.lower() and list(gas) == ["0xa1b2c3d4"]

    before = gas["0xa1b2c3d4"]
    (session.path / "gas.json").write_text(json.dumps({payee: {"0xa1b2c3d4": before - 7}}))
    result = run(session, "--fastevm-gas-check", "gas.json")
    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["*gas that differs*", f"{payee} 0xa1b2c3d4: {before - 7:,} -> {before:,} gas (+7)"]
    )


def test_gas_is_compared_for_functions_of_both_runs() -> None:
    report = GasReport()
    report.used = defaultdict(list, {("Token", "a"): [3, 9, 5], ("Token", "b"): [7]})
    assert report.medians() == {"Token": {"a": 5, "b": 7}}
    assert report.changes(report.medians()) == []
    assert report.changes({"Token": {"a": 5, "gone": 1}, "Other": {"a": 1}}) == []
    assert report.changes({"Token": {"a": 1_006}}) == ["Token a: 1,006 -> 5 gas (-1,001)"]


def test_a_file_that_is_no_gas_snapshot_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "gas.json"
    with pytest.raises(FileNotFoundError):
        read_snapshot(path)
    for text in ("", "[1]", '{"Token": {"a": "1"}}'):
        path.write_text(text)
        with pytest.raises(ValueError, match=r"gas\.json is not a gas snapshot: "):
            read_snapshot(path)


def test_a_gas_snapshot_that_cannot_be_read_is_an_error_before_the_tests(
    session: pytest.Pytester,
) -> None:
    session.makepyfile(PAYMENT.replace("DATA", "0x"))
    result = run(session, "--fastevm-gas-check", "none.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --fastevm-gas-check: *none.json*"])


def test_a_file_that_cannot_be_written_fails_the_session(session: pytest.Pytester) -> None:
    session.makepyfile(PAYMENT.replace("DATA", "0x"))
    result = run(session, "--fastevm-gas-snapshot", "absent/gas.json")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*files that could not be written*", "*absent/gas.json*"])
