"""Tests that library and command line verify the witnesses that a node returns for its blocks."""

import json
from pathlib import Path
from typing import Any

import pytest

from fastevm.__main__ import main
from fastevm.bench.node.launch import ServerThread
from fastevm.chain.config import ChainConfig
from fastevm.chain.stateless import Witness, verify
from fastevm.core.execution.block.block_decoding import decode_block
from fastevm.node import Mining, dev_node
from fastevm.rpc_client.messages import RpcRefusal

from .conftest import RECORDED

GENESIS = RECORDED / "genesis.json"
BLOCKS = 54  # number of blocks in the recorded chain


def test_every_block_of_a_chain_of_all_forks_is_served_and_verified(live: ServerThread) -> None:
    config = ChainConfig.from_genesis(json.loads(GENESIS.read_text()))
    with live.client("geth") as client:
        assert int(client.call("eth_blockNumber"), 16) == BLOCKS
        for number in map(hex, range(1, BLOCKS + 1)):
            block = decode_block(bytes.fromhex(client.call("debug_getRawBlock", number)[2:]))
            found = client.call("debug_executionWitness", number)
            by_hash = client.call("debug_executionWitnessByBlockHash", "0x" + block.hash.hex())
            witness = Witness.from_json(found)
            verified = verify(block, witness, config)
            assert by_hash == found
            assert verified.state_root == block.header.state_root
            assert (verified.nodes, verified.codes) == (len(witness.state), len(witness.codes))


def test_the_command_verifies_a_node_and_a_file(
    live: ServerThread, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "block.json"
    genesis = ["--genesis", str(GENESIS)]
    asked = ["stateless", "verify", "--url", live.url("geth"), "--block", "50"]
    assert main([*asked, *genesis, "--save", str(saved)]) == 0
    assert "block 50 0x" in capsys.readouterr().out
    assert main(["stateless", "verify", str(saved), *genesis]) == 0
    reported = capsys.readouterr().out
    assert "holds" in reported
    assert "state root    0x" in reported
    document: dict[str, Any] = json.loads(saved.read_text())
    document["witness"]["state"].pop()
    saved.write_text(json.dumps(document))
    assert main(["stateless", "verify", str(saved), *genesis]) == 1
    assert "is missing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[", "not a JSON file"),
        ("[]", "expected an object"),
        ('{"chainId": 1}', "block: missing"),
        ('{"chainId": 1, "block": "0xc0", "witness": {}}', "block"),
    ],
)
def test_a_file_that_is_no_witness_is_refused_with_words(
    content: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "witness.json"
    file.write_text(content)
    assert main(["stateless", "verify", str(file)]) == 1
    assert words in capsys.readouterr().err


def test_a_file_or_a_url_must_be_given(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stateless", "verify"]) == 2
    assert "pass a file or --url" in capsys.readouterr().err


def test_blocks_without_a_witness_are_refused(live: ServerThread) -> None:
    with live.client("geth") as client:
        for parameter, words in (("0x0", "genesis has no witness"), ("0x7fff", "not found")):
            with pytest.raises(RpcRefusal, match=words):
                client.call("debug_executionWitness", parameter)
        with pytest.raises(RpcRefusal, match="not found"):
            client.call("debug_executionWitnessByBlockHash", "0x" + "01" * 32)


def test_a_state_that_was_changed_by_hand_has_no_witness() -> None:
    with ServerThread(dev_node(mining=Mining.MANUAL)) as server, server.client("geth") as client:
        client.call("evm_mine")
        client.call("anvil_setBalance", "0x" + "77" * 20, "0x1")
        client.call("evm_mine")
        with pytest.raises(RpcRefusal, match="changed without a block"):
            client.call("debug_executionWitness", "0x2")
        client.call("evm_mine")
        assert client.call("debug_executionWitness", "0x3")["state"]
