"""Chooses the official test files for a test run: a fixed sample of each directory and fork.

``fastevm conformance all`` runs all files.
"""

import json
import random
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from fastevm.conformance.sources import test_files as files_of
from tests.shared_data import SHARED

SEED = 0xE57
# Of a large suite, one in five files of each directory is run.
SHARE = 5
SMALL = 250  # suites of up to this many files are run completely

HUNGRY = "randomStatetest94.json"
"""Computes a hash of 1.6 GB. A separate test runs this file under one fork."""

ONCE_RED = (
    "stBadOpcode/invalidAddr.json",
    "stCreate2/CREATE2_Suicide.json",
    "stPreCompiledContracts/idPrecomps.json",
    "stPreCompiledContracts/modexp.json",
    "stPreCompiledContracts/precompsEIP2929Cancun.json",
    "stReturnDataTest/modexp_modsize0_returndatasize.json",
    "stRevertTest/RevertPrecompiledTouchExactOOG_Paris.json",
    "stZeroKnowledge/ecpairing_inputs.json",
    "stZeroKnowledge/pairingTest.json",
)
"""Ends of paths of files that once failed. The sample always contains these files."""


def archive(suite: str) -> Path:
    """Returns the archive of a suite. Skips the test if the archive is missing."""
    return (SHARED / "fixtures" / f"{suite}.tar.zst").required


@cache
def manifest() -> Mapping[str, Any]:
    """Returns the list of files in the archives."""
    archive("general_state_tests")
    return json.loads((SHARED / "fixtures" / "manifest.json").read_text())


def chosen(suite: str) -> Mapping[str, int]:
    """Returns path -> number of cases, for the files to run. They cover every fork of the suite."""
    files = [file for file in manifest()["files"] if file["suite"] == suite]
    if len(files) <= SMALL:
        taken = files
    else:
        taken = list(stratified(files))
        have = {fork for file in taken for fork in file["forks"]}
        for file in files:
            if not have.issuperset(file["forks"]) or file["path"].endswith(ONCE_RED):
                taken.append(file)
                have.update(file["forks"])
    return {file["path"]: file["cases"] for file in taken if not file["path"].endswith(HUNGRY)}


def stratified(files: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yields a fixed sample of the files of each directory, at least one."""
    strata = defaultdict(list)
    for file in files:
        strata[file["path"].rpartition("/")[0]].append(file)
    choose = random.Random(SEED)
    for directory in sorted(strata):
        stratum = sorted(strata[directory], key=lambda file: file["path"])
        yield from choose.sample(stratum, -(-len(stratum) // SHARE))


def write_out(suite: str, paths: Collection[str], folder: Path) -> None:
    """Unpacks files of an archive. Files in different folders may have the same name."""
    for name, content in files_of([archive(suite)]):
        if name in paths:
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
