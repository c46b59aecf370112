"""Runs the official tests: small suites completely, and a stratified sample of large suites."""

import io
import os
from itertools import islice
from pathlib import Path

import msgspec
import pytest

from fastevm.conformance import blockchain
from fastevm.conformance.kinds import EVERY, SUITES, kind_of
from fastevm.conformance.runner import Selection, Suite, Tally, run_suite
from fastevm.conformance.sources import test_files as files_of

from .sampling import HUNGRY, archive, chosen, manifest, write_out

LOOKED_AT = 30  # files that are read to find out which kind of tests an archive has
WORKERS = os.cpu_count() or 1

SAMPLED = (
    "general_state_tests",
    "legacy_cancun_state_tests",
    "legacy_constantinople_state_tests",
    "eest_state_tests",
    "eest_ported_state_tests",
    "fusaka_devnet5_state_tests",
    "blockchain_tests",
    "blockchain_pyspecs",
    "legacy_blockchain_tests",
    "eest_blockchain_tests",
)

WHOLE = {
    "basic_tests": 5_029,
    "difficulty_tests": 11_168,
    "eest_amsterdam_blockchain_tests": 522,
    "eest_amsterdam_state_tests": 1_399,
    "eest_amsterdam_transaction_tests": 47,
    "legacy_vm_tests": 369,
    "precompile_vectors": 1_883,
    "rlp_tests": 34,
    "transaction_tests": 1_616,
    "eest_transaction_tests": 94,
    "trie_tests": 16,
}
"""Archive -> number of cases. All files of these archives are run."""

FILLED = {"eip1559_tx_validity": 4}
"""Folder of `filled` -> number of cases. No archive contains these cases.

From the official tests, github.com/ethereum/execution-specs at 5cdb055e, filled there by
``fill tests/london/eip1559_fee_market_change/test_tx_type.py --from Frontier --until Homestead``.
"""


def run(suite: Suite, paths: list[Path], selection: Selection | None = None) -> Tally:
    """Runs the files. If any test fails, the AssertionError lists all failures."""
    output = io.StringIO()
    tally = run_suite(suite, paths, workers=WORKERS, output=output, selection=selection)
    assert tally.failed == 0, output.getvalue()
    return tally


@pytest.mark.parametrize("name", SAMPLED)
def test_a_sample_of_every_directory_and_fork_holds(name: str, tmp_path: Path) -> None:
    files = chosen(name)
    write_out(name, files, tmp_path)
    tally = run(EVERY, [tmp_path])
    assert (tally.passed, tally.skipped) == (sum(files.values()), 0)


@pytest.mark.parametrize("name", WHOLE)
def test_every_case_of_a_small_suite_holds(name: str) -> None:
    tally = run(EVERY, [archive(name)])
    assert tally.passed + tally.skipped == WHOLE[name]
    assert tally.skipped == 0 or name == "basic_tests"


@pytest.mark.parametrize("name", FILLED)
def test_cases_that_no_archive_holds(name: str) -> None:
    tally = run(EVERY, [Path(__file__).parent / "filled" / name])
    assert (tally.passed, tally.skipped) == (FILLED[name], 0)


@pytest.mark.slow
def test_a_gigabyte_and_a_half_is_hashed_at_once(tmp_path: Path) -> None:
    suite = "legacy_blockchain_tests"
    paths = [f["path"] for f in manifest()["files"] if f["path"].endswith(f"/{HUNGRY}")]
    write_out(suite, paths, tmp_path)
    tally = run(blockchain.cases, [tmp_path], Selection(fork="Homestead"))
    assert tally.passed == 1


def test_files_of_every_archive_are_of_a_known_kind() -> None:
    suites = [suite["suite"] for suite in manifest()["suites"]]
    found = set()
    for suite in [*suites, "precompile_vectors"]:
        for name, content in islice(files_of([archive(suite)]), LOOKED_AT):
            kind = kind_of(name, msgspec.json.decode(content))
            assert kind in SUITES, name
            found.add(kind)
    assert found == set(SUITES) - {"engine"}
