"""Tests the input, the output and the exit codes of ``fastevm t8n``."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from fastevm.__main__ import evm, main
from fastevm.cli.options import STDIN, Options, default_values
from fastevm.cli.t8n import transitioned
from fastevm.cli.writing import alloc_json, result_json
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.primitives import rlp
from fastevm.core.spec.activation import NETWORK_FORKS
from fastevm.core.state.layer import Layer

from .support import COINBASE, KEY, ROOT, SENDER, TARGET, alloc, env_of, run, transaction

COUNTER = "0x6001600055"  # slot 0 = 1
LOGGER = "0x60006000a0"
EMPTY_LIST_HASH = "0x1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347"

Patch = pytest.MonkeyPatch
Capture = pytest.CaptureFixture[str]


def inputs(fork: str = "london", *transactions: dict[str, Any], **env: Any) -> dict[str, Any]:
    txs = list(transactions) or [transaction()]
    return {"alloc": alloc(COUNTER), "env": env_of(fork, **env), "txs": txs}


def test_a_transaction_changes_the_state(monkeypatch: Patch, capsys: Capture) -> None:
    code, printed = run(monkeypatch, capsys, inputs(), "--state.reward=-1")
    assert code == 0
    result, accounts = printed["result"], printed["alloc"]
    gas = int(result["gasUsed"], 16)
    assert accounts[TARGET]["storage"] == {
        "0x" + "00" * 32: "0x" + "00" * 31 + "01",
        "0x" + "00" * 31 + "01": "0x" + "00" * 31 + "02",
    }
    assert accounts[SENDER] == {"balance": hex(10**18 - 100 * gas), "nonce": "0x1"}
    assert accounts[COINBASE] == {"balance": hex((100 - 7) * gas)}
    assert result["currentBaseFee"] == "0x7"
    assert "rejected" not in result
    (receipt,) = result["receipts"]
    assert (receipt["status"], receipt["gasUsed"], receipt["logs"]) == ("0x1", hex(gas), [])
    (signed,) = rlp.decode(bytes.fromhex(printed["body"][2:]))
    assert "0x" + Transaction.decode(rlp.encode(signed)).hash.hex() == receipt["transactionHash"]


def test_inputs_may_be_values_of_the_same_process(
    monkeypatch: Patch, capsys: Capture, tmp_path: Path
) -> None:
    given = inputs()
    printed = run(monkeypatch, capsys, given)[1]
    streams = dict.fromkeys(("input.alloc", "input.env", "input.txs"), STDIN)
    options = Options(default_values() | streams | {"state.fork": "london"})
    found = transitioned(options, tmp_path, given)
    assert result_json(found) == printed["result"]
    assert alloc_json(found.result.layer) == printed["alloc"]


def test_the_root_is_that_of_the_accounts(monkeypatch: Patch, capsys: Capture) -> None:
    _, printed = run(monkeypatch, capsys, inputs())
    accounts = {
        bytes.fromhex(address[2:]): {
            "balance": int(fields["balance"], 16),
            "nonce": int(fields.get("nonce", "0x0"), 16),
            "code": bytes.fromhex(fields.get("code", "0x")[2:]),
            "storage": {
                int(slot, 16): int(value, 16) for slot, value in fields.get("storage", {}).items()
            },
        }
        for address, fields in printed["alloc"].items()
    }
    root = Layer.of(accounts).state_root().hex()
    assert printed["result"]["stateRoot"] == f"0x{root}"


def test_what_a_fork_adds_to_the_result(monkeypatch: Patch, capsys: Capture) -> None:
    frontier = run(monkeypatch, capsys, inputs("frontier"), fork="frontier")[1]["result"]
    assert frontier["currentDifficulty"] == "0x20000"
    assert "currentBaseFee" not in frontier
    assert len(frontier["receipts"][0]["root"]) == 66
    cancun = run(monkeypatch, capsys, inputs("cancun"), fork="cancun")[1]["result"]
    assert cancun["currentDifficulty"] is None
    assert (cancun["blobGasUsed"], cancun["currentExcessBlobGas"]) == ("0x0", "0x0")
    assert len(cancun["withdrawalsRoot"]) == 66
    assert "requestsHash" not in cancun


def test_a_refused_transaction_is_listed_and_left_out(monkeypatch: Patch, capsys: Capture) -> None:
    given = inputs("london", transaction(nonce="0x9"), transaction())
    result = run(monkeypatch, capsys, given)[1]["result"]
    (rejected,) = result["rejected"]
    assert rejected["index"] == 0
    assert rejected["error"].startswith("nonce too high")
    assert [receipt["transactionIndex"] for receipt in result["receipts"]] == ["0x0"]


def test_transactions_may_come_as_rlp(monkeypatch: Patch, capsys: Capture) -> None:
    signed = Transaction.build(
        nonce=0, gas_limit=100_000, gas_price=100, to=bytes.fromhex(TARGET[2:])
    ).sign(KEY, chain_id=1)
    broken = b"\x02\xc0"
    given = inputs() | {"txs": "0x" + rlp.encode([rlp.decode(signed.raw), broken]).hex()}
    result = run(monkeypatch, capsys, given)[1]["result"]
    assert result["receipts"][0]["transactionHash"] == f"0x{signed.hash.hex()}"
    assert [entry["index"] for entry in result["rejected"]] == [1]


@pytest.mark.parametrize("given", [{"txsRlp": ""}, {"txsRlp": "", "txs": []}, {}])
def test_no_transactions_may_be_given(
    monkeypatch: Patch, capsys: Capture, given: dict[str, Any]
) -> None:
    without = {name: value for name, value in inputs().items() if name != "txs"}
    code, printed = run(monkeypatch, capsys, without | given)
    assert (code, printed["result"]["receipts"], printed["body"]) == (0, [], "0xc0")


def test_transactions_as_rlp_come_before_those_as_json(monkeypatch: Patch, capsys: Capture) -> None:
    signed = Transaction.build(
        nonce=0, gas_limit=100_000, gas_price=101, to=bytes.fromhex(TARGET[2:])
    ).sign(KEY, chain_id=1)
    given = inputs() | {"txsRlp": rlp.encode([rlp.decode(signed.raw)]).hex()}
    (receipt,) = run(monkeypatch, capsys, given)[1]["result"]["receipts"]
    assert receipt["transactionHash"] == f"0x{signed.hash.hex()}"


HASH_READS = [
    ((4, 2), 0, None),
    ((4, 3, 2), 4, 3),
    ((1, 3, 2), 4, 3),
    ((3, 1, 4), 4, 1),
    ((5, 6), 0, None),  # BLOCKHASH of this block (5) and of later blocks is zero
]


@pytest.mark.parametrize(("numbers", "code", "missing"), HASH_READS)
@pytest.mark.parametrize("end", ["", "fe"])  # fe: the reads of a failed call count too
@pytest.mark.parametrize("options", [(), ("--opcode.count=stderr",)])
def test_a_block_hash_that_is_not_given_is_four(
    monkeypatch: Patch, capsys: Capture, numbers: tuple[int, ...], code: int,
    missing: int | None, end: str, options: tuple[str, ...],
) -> None:  # fmt: skip
    reads = "".join(f"60{number:02x}4050" for number in numbers)
    given = inputs("london", blockHashes={"0x4": ROOT, "2": ROOT})
    given |= {"alloc": alloc(f"0x{reads}{end}")}
    exit_code, printed = run(monkeypatch, capsys, given, *options)
    assert exit_code == code
    if missing is not None:
        reason = "invoked, blockhash for that block not provided"
        assert printed["error"] == f"ERROR(4): getHash({missing}) {reason}\n"


def test_without_any_block_hash_the_error_says_so(monkeypatch: Patch, capsys: Capture) -> None:
    given = inputs() | {"alloc": alloc("0x600440")}
    code, printed = run(monkeypatch, capsys, given)
    assert (code, printed["error"]) == (
        4, "ERROR(4): getHash(4) invoked, no blockhashes provided\n",
    )  # fmt: skip


def test_a_block_hash_that_no_gas_is_left_for_is_not_read(
    monkeypatch: Patch, capsys: Capture
) -> None:
    given = inputs("london", transaction(gas=hex(21_000 + 3 + 19)))
    assert run(monkeypatch, capsys, given | {"alloc": alloc("0x600440")})[0] == 0


def blob_transaction(**changes: Any) -> dict[str, Any]:
    fields = transaction(
        type="0x3", chainId="0x1", maxFeePerGas="0x64", maxPriorityFeePerGas="0x0",
        maxFeePerBlobGas="0x1", blobVersionedHashes=["0x01" + "00" * 31],
    ) | changes  # fmt: skip
    return {name: value for name, value in fields.items() if name != "gasPrice"}


def test_blobs_need_the_excess_blob_gas(monkeypatch: Patch, capsys: Capture) -> None:
    given = inputs("cancun", blob_transaction(), currentExcessBlobGas=None)
    (rejected,) = run(monkeypatch, capsys, given, fork="cancun")[1]["result"]["rejected"]
    assert rejected["error"] == "blob tx used but field env.ExcessBlobGas missing"


def test_a_creation_by_a_blob_transaction_is_worded_as_geth_does(
    monkeypatch: Patch, capsys: Capture
) -> None:
    given = inputs("cancun", blob_transaction(to=None))
    (rejected,) = run(monkeypatch, capsys, given, fork="cancun")[1]["result"]["rejected"]
    text = "input string too short for common.Address, decoding into "
    assert rejected["error"] == f"rlp: {text}(types.BlobTx).To"
    signed = Transaction.build(
        type=3, chain_id=1, gas_limit=100_000, max_fee_per_gas=100, max_fee_per_blob_gas=1,
        blob_versioned_hashes=[b"\x01" + bytes(31)],
    ).sign(KEY)  # fmt: skip
    given = inputs("cancun") | {"txsRlp": rlp.encode([signed.raw]).hex()}
    (rejected,) = run(monkeypatch, capsys, given, fork="cancun")[1]["result"]["rejected"]
    assert rejected["error"] == f"rlp: {text}(types.Transaction)(types.BlobTx).To"


def test_miner_and_uncles_are_paid(monkeypatch: Patch, capsys: Capture) -> None:
    uncle = "0x" + "dd" * 20
    given = inputs("frontier", ommers=[{"delta": 1, "address": uncle}]) | {"txs": []}
    accounts = run(monkeypatch, capsys, given, "--state.reward=3200", fork="frontier")[1]["alloc"]
    assert accounts[COINBASE]["balance"] == hex(3200 + 100)
    assert accounts[uncle]["balance"] == hex(3200 * 7 // 8)


def test_withdrawals_are_paid(monkeypatch: Patch, capsys: Capture) -> None:
    paid = {"index": "0x0", "validatorIndex": "0x0", "address": COINBASE, "amount": "0x5"}
    given = inputs("shanghai", withdrawals=[paid]) | {"txs": []}
    accounts = run(monkeypatch, capsys, given, fork="shanghai")[1]["alloc"]
    assert accounts[COINBASE]["balance"] == hex(5 * 10**9)


def test_what_is_not_given_follows_from_the_parent(monkeypatch: Patch, capsys: Capture) -> None:
    parent = {"parentBaseFee": "0x64", "parentGasUsed": "0x0", "parentGasLimit": "0x1c9c380"}
    given = inputs("london", currentBaseFee=None, **parent) | {"txs": []}
    given["env"] |= {"parentTimestamp": "0x3dd", "parentDifficulty": "0x100000"}
    given["env"]["parentUncleHash"] = EMPTY_LIST_HASH
    del given["env"]["currentDifficulty"]
    result = run(monkeypatch, capsys, given)[1]["result"]
    assert result["currentBaseFee"] == hex(100 - 12)
    assert result["currentDifficulty"] == hex(0x100000)


def test_blob_parameters_replace_those_of_the_fork(monkeypatch: Patch, capsys: Capture) -> None:
    parent = {"parentExcessBlobGas": "0x0", "parentBlobGasUsed": hex(2 * 131_072)}
    given = inputs("cancun", currentExcessBlobGas=None, **parent) | {"txs": []}
    given["blobParams"] = {"target": "0x1", "max": "0x2", "baseFeeUpdateFraction": "0x32f0ed"}
    options = "--input.blobParams=stdin"
    result = run(monkeypatch, capsys, given, options, fork="cancun")[1]["result"]
    assert result["currentExcessBlobGas"] == hex(131_072)


def test_a_block_that_its_requests_spoil_says_so(monkeypatch: Patch, capsys: Capture) -> None:
    result = run(monkeypatch, capsys, inputs("cancun"), fork="prague")[1]["result"]
    assert "withdrawal" in result["blockException"]
    assert len(result["receipts"]) == 1


def test_files_go_in_and_out(tmp_path: Path) -> None:
    for name, value in inputs().items():
        (tmp_path / f"{name}.json").write_text(json.dumps(value))
    places = [f"--input.{name}={tmp_path / name}.json" for name in ("alloc", "env", "txs")]
    folder = tmp_path / "made" / "here"
    options = [f"--output.basedir={folder}", "--output.body=body.rlp", "--state.fork=London"]
    assert main(["t8n", *places, *options]) == 0
    assert {path.name for path in folder.iterdir()} == {"alloc.json", "result.json", "body.rlp"}
    assert json.loads((folder / "body.rlp").read_text()).startswith("0x")


def test_traces_are_files_of_included_transactions(
    monkeypatch: Patch, capsys: Capture, tmp_path: Path
) -> None:
    given = inputs("london", transaction(nonce="0x9"), transaction())
    options = ["--trace", f"--output.basedir={tmp_path}"]
    result = run(monkeypatch, capsys, given, *options)[1]["result"]
    (path,) = tmp_path.iterdir()
    assert path.name == f"trace-0-{result['receipts'][0]['transactionHash']}.jsonl"
    *steps, summary = map(json.loads, path.read_text().splitlines())
    assert [step["opName"] for step in steps] == ["PUSH1", "PUSH1", "SSTORE", "STOP"]
    assert summary == {"output": "", "gasUsed": hex(int(result["gasUsed"], 16) - 21_000)}


@pytest.mark.parametrize("trace", [(), ("--trace",)])
def test_opcodes_of_included_and_of_failing_transactions_are_counted(
    monkeypatch: Patch, capsys: Capture, tmp_path: Path, trace: tuple[str, ...]
) -> None:
    given = inputs("london", transaction(nonce="0x9"), transaction(), transaction(nonce="0x1"))
    given["alloc"][TARGET]["code"] = "0x60016002015020500c"  # the stack is empty at KECCAK256
    options = [f"--output.basedir={tmp_path}", "--opcode.count=opcodes.json", *trace]
    assert run(monkeypatch, capsys, given, *options)[0] == 0
    counts = json.loads((tmp_path / "opcodes.json").read_text())
    assert counts == {"PUSH1": 4, "ADD": 2, "POP": 2, "KECCAK256": 2}


def test_an_undefined_opcode_is_counted_by_its_byte(monkeypatch: Patch, capsys: Capture) -> None:
    given = inputs() | {"alloc": alloc("0x0c")}
    printed = run(monkeypatch, capsys, given, "--opcode.count=stdout")[1]
    assert printed["opcode.count"] == {"0x0c": 1}


def test_the_executable_evm_has_the_version_that_fillers_look_for(capsys: Capture) -> None:
    for flag in ("-v", "--version"):
        assert evm([flag]) == 0
        assert re.match(r"evm(.exe)? version\b", capsys.readouterr().out)
    with pytest.raises(SystemExit):
        evm(["t8n", "--help"])
    printed = capsys.readouterr().out
    assert all(fork.name in printed for fork in NETWORK_FORKS)


@pytest.mark.parametrize(
    ("change", "fork", "code", "words"),
    [
        ({}, "lundon", 3, "unknown fork"),
        ({}, "London+3855", 3, "London+3855: adding EIPs to a fork is not supported"),
        ({"env": env_of("cancun")}, "BPO3", 3, "blobSchedule: bpo3 is missing"),
        ({"env": env_of("london", currentBaseFee=None)}, "london", 3, "missing 'parentBaseFee'"),
        ({"env": env_of("london", currentDifficulty=None)}, "london", 3, "parentDifficulty"),
        ({"env": env_of("paris", currentRandom=None)}, "paris", 3, "requires currentRandom"),
        ({"env": env_of("paris")}, "shanghai", 3, "missing 'withdrawals'"),
        ({"env": env_of("shanghai")}, "cancun", 3, "requires parentBeaconBlockRoot"),
        ({"env": env_of("london", currentGasLimit=None)}, "london", 10, "currentGasLimit"),
        ({"env": env_of("london", currentNumber="five")}, "london", 10, "not a number"),
        ({"alloc": {"0xzz": {}}}, "london", 10, "alloc"),
        ({"txs": 5}, "london", 10, "expected a list"),
        ({"txs": [{"gas": []}]}, "london", 10, "txs"),
        ({"txs": "0x80"}, "london", 12, "expected a list"),
        ({"txs": "0xc5"}, "london", 12, "txs"),
    ],
)
def test_every_fault_has_its_exit_code(
    monkeypatch: Patch, capsys: Capture, change: dict[str, Any], fork: str, code: int, words: str
) -> None:
    exit_code, printed = run(monkeypatch, capsys, inputs() | change, fork=fork)
    assert (exit_code, words in printed["error"]) == (code, True), printed


def test_files_that_cannot_be_read_are_eleven(tmp_path: Path, capsys: Capture) -> None:
    assert main(["t8n", f"--input.alloc={tmp_path / 'no.json'}"]) == 11
    assert "alloc" in capsys.readouterr().err


FEATURES = Path(__file__).parents[3] / "docs/start/features.md"


def test_the_documented_command_is_understood(capsys: Capture) -> None:
    lines = FEATURES.read_text().splitlines()
    (line,) = (line for line in lines if line.startswith("fastevm t8n"))
    with pytest.raises(SystemExit):
        main(["t8n", "--help"])
    printed = capsys.readouterr().out
    assert all(word in printed for word in line.split() if word.startswith("--"))
