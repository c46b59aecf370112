"""Tests the benchmark cases that are made from slow blocks: their checks and their files."""

import json
from pathlib import Path
from typing import Any

import pytest

from fastevm.bench import worst_cases
from fastevm.bench.engines.evms import call_for, outcome_of
from fastevm.bench.programs import cases
from fastevm.chain.chain import Chain
from fastevm.cli.writing import alloc_json
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.primitives.hex import hex_bytes
from fastevm.node import Mining, dev_node
from fastevm.node.dev_accounts import dev_accounts

SENDER = dev_accounts(1)[0]
TITLE = "tests/benchmark/compute/instruction/test_jump.py::test_loop[30M]"
LOOP = "5b600056"  # JUMPDEST, PUSH1 0, JUMP: loops until it is out of gas
RETURNS_LOOP = "6004600c60003960046000f3" + LOOP


def filled(gas_limits: list[int], **changes: Any) -> dict[str, Any]:
    """Returns a test in the format of the filler: one block creates the loop, the next calls it."""
    node = dev_node(mining=Mining.MANUAL, accounts=1, hardfork="osaka", chain_id=1)
    chain: Chain = node.chain
    genesis, before = chain.head, chain.layer_of(chain.head.hash)
    fees: dict[str, Any] = {"max_fee_per_gas": 10**11, "max_priority_fee_per_gas": 1, "chain_id": 1}
    made = Transaction.build(
        to=None, data=bytes.fromhex(RETURNS_LOOP), gas_limit=200_000, nonce=0, **fees
    ).sign(SENDER.private_key)
    node.submit(made.raw)
    node.mine()
    address = node.chain.receipts_of(node.chain.head.hash)[0].contract_address
    for nonce, limit in enumerate(gas_limits, 1):
        call = Transaction.build(to=address, gas_limit=limit, nonce=nonce, **fees)
        node.submit(call.sign(SENDER.private_key).raw)
    node.mine()
    blocks = [chain.block_by_number(number) for number in (1, 2)]
    test = {
        "network": "Osaka",
        "config": {"chainid": "0x1"},
        "pre": alloc_json(before),
        "genesisRLP": hex_bytes(genesis.rlp()),
        "blocks": [{"rlp": hex_bytes(block.rlp()), "blockHeader": {}} for block in blocks if block],
    }
    return test | changes


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "filled"
    made.mkdir()
    (made / "index.json").write_text(json.dumps({"test_cases": []}))
    (made / "loop.json").write_text(json.dumps({TITLE: filled([100_000, 300_000])}))
    return made


def test_the_call_with_most_gas_becomes_a_case(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = folder.parent / "cases.json"
    assert worst_cases.main([str(folder), str(written), "--gas", "50000"]) == 0
    (case,) = cases.load(written)
    assert (case.name, case.group) == ("instruction/jump::loop[30M]", "instruction")
    assert case.document["gas"] == 50_000
    assert case.expected(False) == outcome_of(call_for(case)())
    assert not case.expected(False).success
    assert case.expected(False).gas_used == 50_000
    assert worst_cases.main([str(folder), str(written)]) == 0
    assert cases.load(written)[0].document["gas"] == 300_000
    assert "1 blocks" in capsys.readouterr().out


def test_a_block_that_is_not_as_expected_is_reported(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    test = filled([100_000])
    test["blocks"][1]["expectException"] = "TransactionException.NONCE_IS_MAX"
    (folder / "loop.json").write_text(json.dumps({TITLE: test}))
    assert worst_cases.main([str(folder), str(folder / "cases.json")]) == 1
    assert "instruction/jump::loop[30M]: " in capsys.readouterr().err


def test_a_folder_without_tests_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert worst_cases.main([str(tmp_path), str(tmp_path / "cases.json")]) == 2
    assert "no " in capsys.readouterr().err
