"""Tests ``fastevm bench``: it verifies results before timing, writes JSON, and needs no peers."""

import json
import sys
from pathlib import Path

import pytest

from fastevm.__main__ import main
from fastevm.bench import command
from fastevm.bench.engines import evms as engines
from fastevm.bench.report import page

ADDER = "0x00000000000000000000000000000000000000aa"
CALLER = "0x00000000000000000000000000000000000000cc"
# Returns the sum of the first two words of calldata.
CODE = "0x60203560003501600052602060" + "00f3"

PEER = """
def version():
    return "7"

class Program:
    def run(self):
        sum(range(1000))

    def outcome(self):
        return {outcome!r}

def prepare(env, case, slow):
    return Program()
"""


def case(name="sum/small", group="sums", **changes):
    word = (2).to_bytes(32, "big") + (3).to_bytes(32, "big")
    document = {
        "name": name,
        "group": group,
        "pre": {ADDER: {"code": CODE, "balance": "0x0"}, CALLER: {"balance": "0x10"}},
        "caller": CALLER,
        "to": ADDER,
        "calldata": "0x" + word.hex(),
        "gas": 100_000,
        "expected_gas_used": 30,
        "expected_output": "0x" + (5).to_bytes(32, "big").hex(),
        "expected_success": True,
    }
    return document | changes


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs the command on given cases. Returns its exit code and the JSON that it wrote."""
    monkeypatch.setattr(engines, "PEER_KINDS", ())
    monkeypatch.setattr(engines, "COMPILED_KINDS", ())

    def run(cases, *options):
        file, output = tmp_path / "cases.json", tmp_path / "out.json"
        env = {"fork": "cancun", "number": 7, "chain_id": 1}
        file.write_text(json.dumps({"env": env, "cases": cases}))
        code = main(["bench", "--quick", "--cases", str(file), "--json", str(output), *options])
        return code, json.loads(output.read_text()) if output.exists() else None

    return run


@pytest.fixture
def peer(tmp_path, monkeypatch):
    """Provides a function that installs a peer in another process, which gives a fixed outcome."""

    def peer(gas_used=30, slow=False, **changes):
        output = "0x" + (5).to_bytes(32, "big").hex()
        outcome = {"gas_used": gas_used, "output": output, "success": True} | changes
        (tmp_path / "on_other.py").write_text(PEER.format(outcome=outcome))
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        monkeypatch.setenv("FASTEVM_PEER_OTHER", sys.executable)
        kind = engines.PeerKind("other", "on_other", "other", slow)
        monkeypatch.setattr(engines, "PEER_KINDS", (kind,))

    return peer


def test_figures_are_microseconds_by_case_and_engine(run):
    code, found = run([case()])
    assert code == 0
    assert list(found["cases"]) == ["sum/small"]
    assert 0.05 < found["cases"]["sum/small"]["fastevm"] < 1000
    assert found["geomean"] == {"all": {}, "sums": {}}
    assert found["versions"].keys() == {"python", "fastevm"}


def test_a_case_with_another_outcome_is_not_timed(run, capsys):
    code, found = run([case(), case("sum/wrong", expected_gas_used=34)])
    assert code == 1
    assert list(found["cases"]) == ["sum/small"]
    assert "sum/wrong: gas_used is 30, expected 34" in capsys.readouterr().err


def test_ratios_are_of_the_peer_by_fastevm(run, peer):
    peer()
    _, found = run([case()], "--peers", "other")
    times = found["cases"]["sum/small"]
    ratio = times["other"] / times["fastevm"]
    assert found["geomean"]["all"]["other"] == pytest.approx(ratio, rel=0.01)
    assert found["versions"]["other"] == "7"


def test_a_peer_with_another_outcome_has_no_figure(run, peer):
    peer(gas_used=27)
    _, found = run([case()], "--peers", "other")
    assert list(found["cases"]["sum/small"]) == ["fastevm"]
    assert "gas_used is 27" in found["notes"][0]


def test_a_peer_that_counts_prepared_slots_as_warm_keeps_its_figure(run, peer):
    peer(gas_used=27, warm_slots=True)
    _, found = run([case()], "--peers", "other")
    assert "other" in found["cases"]["sum/small"]
    assert "3 gas less" in found["notes"][0]


def test_a_slow_peer_runs_the_shorter_form_and_is_scaled_by_gas(run, peer):
    peer(gas_used=11, slow=True)
    short = {"gas_used": 11, "output": case()["expected_output"], "success": True}
    full = case(expected_slow=short, calldata_slow="0x", gas_slow=50)
    _, found = run([full], "--peers", "other")
    assert found["scaled"] == ["other"]
    low, high = found["spread"]["sum/small"]["other"]
    assert 0 < low <= high


def test_a_missing_peer_is_left_out_with_a_word(run, monkeypatch, capsys):
    monkeypatch.setenv("FASTEVM_PEER_ABSENT", "/nonexistent/python")
    kind = engines.PeerKind("absent", "on_absent", "absent>=1", False)
    monkeypatch.setattr(engines, "PEER_KINDS", (kind,))
    code, found = run([case()], "--peers", "absent")
    assert code == 0
    assert "absent>=1" in found["missing"]["absent"]
    assert "absent is left out" in capsys.readouterr().err


def test_a_pattern_chooses_cases(run):
    assert list(run([case(), case("other/one")], "--match", "other/*")[1]["cases"]) == ["other/one"]


def test_nothing_to_measure_is_an_error_of_use(run, capsys):
    assert run([case()], "--match", "nothing*") == (2, None)
    assert "no case that matches" in capsys.readouterr().err


def test_a_report_is_a_page_and_its_figures(run, tmp_path, monkeypatch):
    monkeypatch.setattr(command, "DEFAULT_CASES", tmp_path / "cases.json")
    place = tmp_path / "report"
    _, found = run([case()], "--report", str(place))
    assert json.loads((place / "figures.json").read_text())["cases"] == found["cases"]
    text = (place / "index.html").read_text()
    assert text.startswith("<!doctype html>") and "sum/small" in text


def test_a_report_keeps_the_figures_of_other_files_of_cases(run, tmp_path, monkeypatch, peer):
    peer()
    report = tmp_path / "report"
    _, found = run([case("worst/<one>")], "--peers", "other", "--report", str(report))
    assert json.loads((report / "cases-cases.json").read_text())["cases"] == found["cases"]
    assert not (report / "figures.json").exists()
    monkeypatch.setattr(command, "DEFAULT_CASES", tmp_path / "cases.json")
    run([case()], "--report", str(report))
    text = (report / "index.html").read_text()
    assert "<h2>Cases of cases</h2>" in text
    assert "worst/&lt;one&gt;" in text and "sum/small" in text
    assert "geometric mean" in text


FIGURES = {
    "versions": {"python": "3.11", "fastevm": "1", "slow": "2", "quick": "3"},
    "cases": {
        "one": {"fastevm": 2.0, "slow": 8.0, "quick": 1.0},
        "two": {"fastevm": 4.0, "slow": 4.0, "quick": 16.0},
        "own": {"fastevm": 1.0},
    },
    "spread": {"one": {"fastevm": [1.9, 2.1]}},
}


def test_the_page_counts_the_cases_ahead_and_lists_those_behind():
    text = page.lead(FIGURES)
    assert "<td>slow</td><td>2</td><td>1</td><td>50</td><td>0.5</td>" in text
    assert "<td>quick</td><td>2</td><td>1</td><td>50</td><td>0.7071</td>" in text
    behind_slow, behind_quick = text.split("behind ")[1:]
    assert "<td>two</td><td>1</td>" in behind_slow and "one" not in behind_slow
    assert "<td>one</td><td>2</td>" in behind_quick and "two" not in behind_quick


def test_times_have_half_of_the_range_of_their_rounds():
    text = page.cases(FIGURES)
    assert "<td>one</td><td>2</td><td>±5 %</td><td>8</td><td></td>" in text
    assert "<td>own</td><td>1</td><td></td><td></td><td></td>" in text


def test_the_worker_speaks_lines_of_json(tmp_path, peer):
    peer()
    (kind,) = engines.PEER_KINDS
    other = engines.Peer("other", kind.module, Path(sys.executable), slow=False)
    try:
        assert other.version == "7"
        with pytest.raises(engines.PeerError, match="KeyError"):
            other.ask(do="time", name="unknown", runs=1)
    finally:
        other.close()
