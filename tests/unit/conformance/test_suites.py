"""Tests that the runner of each small official suite passes correct cases and fails wrong cases."""

from collections.abc import Iterable
from typing import Any

import pytest

from fastevm.conformance import (
    basic,
    difficulty,
    kinds,
    precompile,
    rlp,
    skips,
    transaction,
    trie,
    vm,
)
from fastevm.conformance.fields import address_of, bytes_of, number_of
from fastevm.conformance.runner import Apart, Case, Mismatch
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.trie.trie import Trie

KEY = keccak256(b"cow")


def outcome(found: Iterable[Case]) -> Mismatch | None:
    ((_, _, run),) = found
    return run()


# --- encodings ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0x", 0),
        ("0x00ff", 255),
        ("17", 17),
        ("", 0),
        (9, 9),
        ("0x:bigint 0x1" + "0" * 64, 1 << 256),
    ],
)
def test_numbers_come_in_many_forms(text: str | int, number: int) -> None:
    assert number_of(text) == number


def test_bytes_may_lack_their_prefix_or_a_digit() -> None:
    assert bytes_of("0xabc") == bytes_of("0abc") == b"\x0a\xbc"
    assert address_of("0x01") == bytes(19) + b"\x01"


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        ("dog", "0x83646f67"),
        ([], "0xc0"),
        ("#1024", "0x820400"),
        (0, "0x80"),
        ([1, "a"], "0xc20161"),
    ],
)
def test_values_encode_and_decode(value: Any, encoded: str) -> None:
    assert outcome(rlp.cases("f", {"t": {"in": value, "out": encoded}})) is None
    assert outcome(rlp.cases("f", {"t": {"in": value, "out": "0x83636174"}})) is not None


@pytest.mark.parametrize(
    ("kind", "encoded", "right"),
    [
        ("VALID", "0xc7c0c1c0c3c0c1c0", True),
        ("INVALID", "0x8100", True),
        ("INVALID", "0x80", False),
    ],
)
def test_bytes_decode_or_are_refused(kind: str, encoded: str, right: bool) -> None:
    mismatch = outcome(rlp.cases("f", {"t": {"in": kind, "out": encoded}}))
    assert (mismatch is None) == right


# --- tries ----------------------------------------------------------------------------------------


def root_of(pairs: dict[bytes, bytes]) -> str:
    made = Trie()
    for key, value in pairs.items():
        made.put(key, value)
    return f"0x{made.root().hex()}"


def test_pairs_are_put_in_order_and_null_deletes() -> None:
    pairs = [["a", "1"], ["b", "0x1234"], ["a", None]]
    root = root_of({b"b": b"\x12\x34"})
    assert outcome(trie.cases("trietest.json", {"t": {"in": pairs, "root": root}})) is None
    wrong = {"t": {"in": pairs[:2], "root": root}}
    assert outcome(trie.cases("trietest.json", wrong)) is not None


def test_keys_of_secure_tries_are_hashed() -> None:
    root = root_of({keccak256(b"a"): b"1"})
    content = {"t": {"in": {"a": "1"}, "root": root}}
    assert outcome(trie.cases("x/trieanyorder_secureTrie.json", content)) is None
    assert outcome(trie.cases("x/trieanyorder.json", content)) is not None


def test_neighbours_are_those_of_the_sorted_keys() -> None:
    good = {"t": {"in": ["cat", "doge"], "tests": [["cat", "", "doge"], ["d", "cat", "doge"]]}}
    bad = {"t": {"in": ["cat", "doge"], "tests": [["cat", "cat", "doge"]]}}
    assert outcome(trie.cases("f", good)) is None
    assert outcome(trie.cases("f", bad)) is not None


# --- rules ----------------------------------------------------------------------------------------


def test_difficulties_are_compared() -> None:
    vector = {
        "currentBlockNumber": "0x2a",
        "currentTimestamp": "43",
        "parentTimestamp": "42",
        "parentDifficulty": "1000000",
        "currentDifficulty": "1000488",
    }
    content = {"file": {"_info": {}, "Homestead": {"one": vector}}}
    ((name, fork, run),) = difficulty.cases("f", content)
    assert (name, fork, run()) == ("Homestead-one", "Homestead", None)
    vector["currentDifficulty"] = "1000489"
    assert outcome(difficulty.cases("f", content)) is not None


@pytest.mark.parametrize(
    ("file", "bomb"),
    [("difficultyHomestead", 2**31), ("difficultyByzantium", 2), ("difficultyEIP2384_random", 0)],
)
def test_old_files_of_difficulties_name_their_fork(file: str, bomb: int) -> None:
    vector = {
        "currentBlockNumber": "3300001",
        "currentTimestamp": "43",
        "parentTimestamp": "42",
        "parentDifficulty": "1000000",
        "currentDifficulty": str(1_000_488 + bomb),
    }
    assert outcome(difficulty.cases(f"BasicTests/{file}.json", {"one": vector})) is None
    vector["currentDifficulty"] = str(1_000_489 + bomb)
    assert outcome(difficulty.cases(f"BasicTests/{file}.json", {"one": vector})) is not None


def signed() -> tuple[Transaction, dict[str, str]]:
    made = Transaction.build(nonce=1, gas_price=1, gas_limit=21_000, to=bytes(20)).sign(KEY)
    sender = "0xcd2a3d9f938e13cd947ec05abc7fe734df8dd826"
    return made, {"hash": f"0x{made.hash.hex()}", "sender": sender, "intrinsicGas": "0x5208"}


def test_transactions_are_accepted_or_refused() -> None:
    made, wanted = signed()
    raw = f"0x{made.raw.hex()}"

    def judged(result: dict[str, str], txbytes: str = raw) -> Mismatch | None:
        content = {"t": {"txbytes": txbytes, "result": {"London": result}}}
        return outcome(transaction.cases("f", content))

    assert judged(wanted) is None
    assert judged(wanted | {"intrinsicGas": "0x5209"}) is not None
    assert judged({"exception": "no reason"}) is not None
    assert judged({"exception": "RLP"}, raw[:-2]) is None
    assert judged(wanted, raw[:-2]) is not None


def test_precompiles_are_compared_by_output_price_and_failure() -> None:
    vector = {"Name": "n", "Input": "", "Expected": "", "Gas": 3000}
    name = "precompiles/ecRecover.json"
    assert outcome(precompile.cases(name, [vector])) is None
    assert outcome(precompile.cases(name, [vector | {"Gas": 3001}])) is not None
    failing = {"Name": "n", "Input": "00", "ExpectedError": "invalid input length"}
    assert outcome(precompile.cases("fail-blake2f.json", [failing])) is None
    assert outcome(precompile.cases(name, [failing])) is not None


def frame(**changes: Any) -> dict[str, Any]:
    """Returns a frame that stores a value, emits no log and has 100,000 gas."""
    target = "0x" + "11" * 20
    code = "0x6001600055"
    account = {"balance": "0x05", "nonce": "0x00", "code": code, "storage": {}}
    env = {
        "currentCoinbase": "0x" + "cc" * 20,
        "currentDifficulty": "0x01",
        "currentGasLimit": "0x0f4240",
        "currentNumber": "0x00",
        "currentTimestamp": "0x01",
    }
    message = {
        "address": target,
        "caller": "0x" + "22" * 20,
        "origin": "0x" + "22" * 20,
        "code": code,
        "data": "0x",
        "gas": "0x0186a0",
        "gasPrice": "0x01",
        "value": "0x0f",
    }
    post = {target: account | {"storage": {"0x00": "0x01"}}}
    empty = keccak256(b"\xc0").hex()
    test = {"env": env, "exec": message, "pre": {target: account}, "post": post}
    return test | {"gas": hex(100_000 - 20_006), "out": "0x", "logs": f"0x{empty}"} | changes


def test_frames_end_with_their_gas_and_storage() -> None:
    target = "0x" + "11" * 20
    assert outcome(vm.cases("f", {"t": frame()})) is None
    assert outcome(vm.cases("f", {"t": frame(gas="0x1")})) is not None
    bare = {target: frame()["pre"][target]}
    assert outcome(vm.cases("f", {"t": frame(post=bare)})) is not None
    poor = frame()
    poor["post"][target]["balance"] = "0x06"
    assert outcome(vm.cases("f", {"t": poor})) is not None


def test_frames_without_a_post_state_must_fail() -> None:
    test = frame()
    del test["post"]
    assert outcome(vm.cases("f", {"t": test})) is not None
    test["exec"]["gas"] = "0x01"
    assert outcome(vm.cases("f", {"t": test})) is None


# --- keys, signatures, genesis blocks -------------------------------------------------------------


def test_keys_have_the_addresses_of_their_seeds() -> None:
    key, address = KEY.hex(), "cd2a3d9f938e13cd947ec05abc7fe734df8dd826"
    good = {"seed": "cow", "key": key, "addr": address}
    assert outcome(basic.cases("keyaddrtest.json", [good])) is None
    assert outcome(basic.cases("keyaddrtest.json", [good | {"addr": "00" * 20}])) is not None
    assert outcome(basic.cases("keyaddrtest.json", [good | {"seed": "horse"}])) is not None


@pytest.mark.parametrize(
    ("path", "ends", "encoded"),
    [
        ([1, 2, 3, 4, 5], False, "112345"),
        ([0, 1, 2, 3, 4, 5], False, "00012345"),
        ([15, 1, 12, 11, 8], True, "3f1cb8"),
        ([0, 15, 1, 12, 11, 8], True, "200f1cb8"),
    ],
)
def test_paths_have_their_compact_encoding(path: list[int], ends: bool, encoded: str) -> None:
    test = {"seq": path, "term": ends, "out": encoded}
    assert outcome(basic.cases("hexencodetest.json", {"t": test})) is None
    assert outcome(basic.cases("hexencodetest.json", {"t": test | {"out": "00"}})) is not None


def test_old_networks_take_their_rules_from_the_block_number() -> None:
    vector = {
        "currentBlockNumber": "4400000",
        "currentTimestamp": "100",
        "parentTimestamp": "90",
        "parentDifficulty": "1000000",
        "parentUncles": "0x1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347",
        "currentDifficulty": str(1_000_000 + 2**12),
    }
    content = {"t": vector}
    assert outcome(basic.cases("difficultyMainNetwork.json", content)) is None
    assert outcome(basic.cases("difficultyRopsten.json", content)) is not None


def test_an_unknown_file_is_no_suite() -> None:
    with pytest.raises(KeyError):
        list(basic.cases("novel.json", {"t": {}}))
    with pytest.raises(KeyError):
        list(precompile.cases("novel.json", []))


# --- kinds of files -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ({"t": frame()}, "vm"),
        ({"t": {"in": {}, "root": "0x"}}, "trie"),
        ({"t": {"in": [], "tests": []}}, "trie"),
        ({"t": {"in": "a", "out": "0x"}}, "rlp"),
        ({"t": {"txbytes": "0x", "result": {}}}, "transaction"),
        ({"t": {"_info": {}, "Berlin": {"v": {"currentDifficulty": "1"}}}}, "difficulty"),
        ({"t": {"currentDifficulty": "1"}}, "difficulty"),
        ({"t": {"post": {}, "transaction": {}, "env": {}}}, "state"),
        ({"t": {"blocks": [], "genesisBlockHeader": {}}}, "blockchain"),
        ({"t": {"engineNewPayloads": [], "genesisBlockHeader": {}}}, "engine"),
        ([{"Input": "", "Expected": ""}], "precompile"),
        ({"root_hash": "0x", "test_cases": []}, kinds.INDEX),
        ({"t": {"vectors": {}}}, kinds.EOF_FORMAT),
        ({"t": {"recipe": 1}}, None),
        ({}, None),
        ([], None),
        (7, None),
    ],
)
def test_a_file_s_kind_is_that_of_its_first_test(content: Any, kind: str | None) -> None:
    assert kinds.kind_of("some/file.json", content) == kind


def test_what_only_names_tell_apart_is_basic() -> None:
    assert kinds.kind_of("BasicTests/txtest.json", []) == "basic"
    assert kinds.kind_of("BasicTests/crypto.json", {}) == "basic"


def test_tests_of_eof_are_set_apart() -> None:
    ((title, fork, run),) = kinds.EVERY("f", {"t": {"vectors": {}}})
    assert (title, fork, run()) == ("t", None, Apart(kinds.NO_EOF))
    assert list(kinds.only("state")("f", {"t": {"vectors": {}}})) == []


def test_an_unfinished_fork_is_set_apart_until_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    skips.unfinished_fork.cache_clear()
    for network in ("Bogota", "AmsterdamToBogotaAtTime15k"):
        assert skips.unfinished_fork(network) is not None
    for network in ("Osaka", "Berlim"):
        assert skips.unfinished_fork(network) is None
    skips.unfinished_fork.cache_clear()
    monkeypatch.setattr(skips, "activations_named", lambda name: name)
    assert skips.unfinished_fork("Bogota") is None
    skips.unfinished_fork.cache_clear()
