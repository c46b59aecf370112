"""Delivers official blockchain tests as payloads.

The runner of engine tests must find no failure.
"""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fastevm.conformance import engine
from fastevm.conformance.runner import Apart, Selection, run_file
from fastevm.conformance.sources import test_files as files_of

from .payloads import engine_test
from .sampling import chosen, write_out

EVERY = 3  # one in this many files of the sample is converted and run
LARGE = 3_000_000  # limit of a file's size in bytes, because larger files take too long

Json = dict[str, Any]


@pytest.fixture(scope="module")
def tests(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Json]:
    """Provides the converted engine tests by name."""
    folder = tmp_path_factory.mktemp("blocks")
    write_out("eest_blockchain_tests", list(chosen("eest_blockchain_tests"))[::EVERY], folder)
    found = {}
    for _, content in files_of([folder]):
        if len(content) < LARGE:
            for title, test in msgspec.json.decode(content).items():
                delivered = engine_test(test)
                if delivered is not None:
                    found[title] = delivered
    return found


def test_payloads_of_every_fork_since_the_merge_are_judged_as_blocks_are(
    tests: dict[str, Json],
) -> None:
    tally = run_file(engine.cases, Selection(), "engine.json", json.dumps(tests).encode())
    assert not tally.failures, tally.failures[0]
    assert tally.passed == len(tests)
    forks = Counter(test["network"] for test in tests.values())
    assert {"Paris", "Shanghai", "Cancun", "Prague", "Osaka"} <= set(forks)
    refused = [p for t in tests.values() for p in t["engineNewPayloads"] if "validationError" in p]
    assert len(refused) > 100


def test_payloads_with_block_access_lists_are_judged_as_blocks_are(tmp_path: Path) -> None:
    suite = "eest_amsterdam_blockchain_tests"
    write_out(suite, list(chosen(suite))[::EVERY], tmp_path)
    tests = {}
    for _, content in files_of([tmp_path]):
        for title, test in msgspec.json.decode(content).items():
            delivered = engine_test(test)
            if delivered is not None:
                tests[title] = delivered
    tally = run_file(engine.cases, Selection(), "engine.json", json.dumps(tests).encode())
    assert not tally.failures, tally.failures[0]
    assert tally.passed == len(tests) > 50
    versions = {p["newPayloadVersion"] for t in tests.values() for p in t["engineNewPayloads"]}
    assert versions == {"5"}


def one(tests: dict[str, Json], fork: str) -> Json:
    """Returns a copy of one test of a fork, whose last payload is valid."""
    return next(
        json.loads(json.dumps(test))
        for test in tests.values()
        if test["network"] == fork and "validationError" not in test["engineNewPayloads"][-1]
    )


def older_version(payload: Json) -> None:
    payload["newPayloadVersion"] = str(int(payload["newPayloadVersion"]) - 1)


def without_beacon_root(payload: Json) -> None:
    payload["params"][2] = None


def without_blob_gas(payload: Json) -> None:
    del payload["params"][0]["blobGasUsed"]


def with_a_foreign_hash(payload: Json) -> None:
    payload["params"][1].append("0x01" + "00" * 31)


def with_an_empty_request(payload: Json) -> None:
    payload["params"][3].append("0x00")


def with_another_hash(payload: Json) -> None:
    payload["params"][0]["blockHash"] = "0x" + "11" * 32


@pytest.mark.parametrize(
    "change",
    [
        older_version, without_beacon_root, without_blob_gas, with_a_foreign_hash,
        with_an_empty_request, with_another_hash,
    ],
)  # fmt: skip
def test_a_payload_whose_parts_do_not_fit_is_refused(
    tests: dict[str, Json], change: Callable[[Json], None]
) -> None:
    test = one(tests, "Prague")
    assert engine.run(test) is None
    payload = test["engineNewPayloads"][-1]
    change(payload)
    assert "accepted" in str(engine.run(test))
    payload["errorCode"] = "-32602"
    mismatch = engine.run(test)
    assert mismatch is not None and mismatch.expected.startswith("head")


def test_a_payload_that_should_be_refused_and_is_not_is_a_failure(tests: dict[str, Json]) -> None:
    test = one(tests, "Cancun")
    test["engineNewPayloads"][0]["validationError"] = "BlockException.INVALID_GASLIMIT"
    mismatch = engine.run(test)
    assert mismatch is not None
    assert mismatch.expected == "engineNewPayloads[0] refused with BlockException.INVALID_GASLIMIT"


def test_a_test_whose_state_is_elsewhere_is_set_apart(tests: dict[str, Json]) -> None:
    test = one(tests, "Cancun") | {"preHash": "0x0123"}
    del test["pre"]
    ((_, fork, run),) = engine.cases("x.json", {"shared": test})
    assert (fork, run()) == ("Cancun", Apart(engine.ELSEWHERE))
