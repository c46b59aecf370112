"""Runs the legacy VM tests: one message call under Frontier rules, with exact gas and results."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from fastevm.conformance.fields import accounts_of, address_of, bytes_of, number_of
from fastevm.conformance.sources import test_files as archived_files
from fastevm.core.primitives import rlp
from fastevm.core.primitives.keccak import keccak256
from fastevm.testing.interpreter import BareMachine, Outcome
from tests.shared_data import SHARED

ARCHIVE = SHARED / "fixtures" / "legacy_vm_tests.tar.zst"
STOPPED = 1
MODES = {"undisturbed": {}, "remote": {"remote": True}, "suspended": {"suspend": True}}


def vm_tests() -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, content in archived_files([ARCHIVE]):
        for title, test in json.loads(content).items():
            yield f"{name.split('VMTests/')[-1]}::{title}", test


def machine_of(test: Mapping[str, Any], mode: Mapping[str, bool]) -> BareMachine:
    env, message = test["env"], test["exec"]
    number = number_of(env["currentNumber"])
    accounts = accounts_of(test["pre"])
    address = address_of(message["address"])
    accounts[address] = accounts.get(address, {}) | {"code": bytes_of(message["code"])}
    ancestors = range(number - 1, max(-1, number - 257), -1)
    return BareMachine(
        "frontier", accounts, **mode,
        number=number, timestamp=number_of(env["currentTimestamp"]),
        gas_limit=number_of(env["currentGasLimit"]),
        coinbase=address_of(env["currentCoinbase"]),
        difficulty=number_of(env["currentDifficulty"]),
        gas_price=number_of(message["gasPrice"]), origin=address_of(message["origin"]),
        ancestors=[keccak256(str(n).encode()) for n in ancestors],
    )  # fmt: skip


def run(machine: BareMachine, message: Mapping[str, str]) -> Outcome:
    return machine.call(
        address_of(message["address"]), bytes_of(message["data"]),
        sender=address_of(message["caller"]), value=number_of(message["value"]),
        gas=number_of(message["gas"]), no_transfer=True,
    )  # fmt: skip


def logs_hash(outcome: Outcome) -> bytes:
    logs = [
        [address, [topic.to_bytes(32, "big") for topic in topics], data]
        for address, topics, data in outcome.logs
    ]
    return keccak256(rlp.encode(logs))


def check_state(machine: BareMachine, post: Mapping[str, Any]) -> None:
    for address, fields in accounts_of(post).items():
        account = machine.account(address)
        assert account is not None
        assert account == {key: fields[key] for key in ("balance", "nonce", "code")}
        for key, value in fields["storage"].items():
            assert machine.storage(address, key) == value


@pytest.mark.skipif(not ARCHIVE.exists(), reason="needs the shared test archives")
@pytest.mark.parametrize("mode", MODES)
def test_every_vm_test_ends_as_expected(mode: str) -> None:
    count = 0
    for name, test in vm_tests():
        machine = machine_of(test, MODES[mode])
        outcome = run(machine, test["exec"])
        count += 1
        if "post" not in test:
            assert outcome.status > STOPPED, name
            continue
        assert (outcome.status, outcome.gas_left) == (STOPPED, number_of(test["gas"])), name
        assert outcome.output == bytes_of(test["out"]), name
        assert logs_hash(outcome) == bytes_of(test["logs"]), name
        check_state(machine, test["post"])
    assert count == 369
