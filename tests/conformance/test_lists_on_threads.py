"""Executes Amsterdam blocks on threads, by their block access lists (EIP-7928)."""

from pathlib import Path

import msgspec
import pytest

from fastevm.chain.retention import ChainLimits
from fastevm.conformance import blockchain
from fastevm.conformance.sources import test_files as files_of
from fastevm.core.execution.parallel import bal_executor

from .sampling import archive

SUITE = "eest_amsterdam_blockchain_tests"
BY_LISTS = 456  # number of valid blocks that have transactions


@pytest.mark.parametrize("threads", [2, 4])
def test_every_block_is_judged_as_on_one_thread(threads: int) -> None:
    before = bal_executor.counted()
    wrong, count = [], 0
    for _, content in files_of([Path(archive(SUITE))]):
        for title, test in msgspec.json.decode(content).items():
            count += 1
            mismatch = blockchain.run(test, ChainLimits(threads=threads))
            if mismatch is not None:
                wrong.append(f"{title}: {mismatch}")
    assert count == 522 and not wrong, wrong
    assert bal_executor.counted() - before == BY_LISTS
