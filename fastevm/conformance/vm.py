"""Runs VM tests: one message frame with Frontier rules, without a transaction."""

from collections.abc import Iterator, Mapping
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

from fastevm.conformance.fields import accounts_of, address_of, bytes_of, number_of
from fastevm.conformance.runner import Apart, Case, Mismatch
from fastevm.conformance.state import ancestors_of, hash_of_logs
from fastevm.core.execution.types import Log

FORK: Final = "Frontier"
NO_MACHINE: Final = "a message without a transaction, which requires a build by `make build`"
MACHINE: Final = "fastevm.testing.interpreter"
"""The module that sends messages without a transaction; it is not installed."""


@cache
def is_available() -> bool:
    """Returns whether the module `MACHINE` was built."""
    try:
        return find_spec(MACHINE) is not None
    except ModuleNotFoundError:
        return False


def cases(name: str, content: Mapping[str, Any]) -> Iterator[Case]:
    """Yields a case for each test of the file."""
    for title, test in content.items():
        yield title, FORK, partial(run, test)


def run(test: Mapping[str, Any]) -> Mismatch | Apart | None:
    """Runs a frame.

    Without ``post`` the frame must fail; else gas, output, logs and state must match.
    """
    if not is_available():
        return Apart(NO_MACHINE)
    machine, outcome = execute(test)
    if "post" not in test:
        return Mismatch("an exceptional halt", "success") if not outcome.error else None
    if outcome.error:
        return Mismatch("success", outcome.error)
    found = {"gas": outcome.gas_left, "out": outcome.output, "logs": digest_of(outcome)}
    expected = {
        "gas": number_of(test["gas"]),
        "out": bytes_of(test["out"]),
        "logs": bytes_of(test["logs"]),
    }
    if found != expected:
        return Mismatch(str(expected), str(found))
    return compare_state(test, machine)


def execute(test: Mapping[str, Any]) -> tuple[Any, Any]:
    """Sets up the world and sends the message, whose value has already been transferred."""
    env, message = test["env"], test["exec"]
    number = number_of(env["currentNumber"])
    target = address_of(message["address"])
    accounts = accounts_of(test["pre"])
    accounts.setdefault(target, {})["code"] = bytes_of(message["code"])
    machine = import_module(MACHINE).BareMachine(
        FORK,
        accounts,
        number=number,
        timestamp=number_of(env["currentTimestamp"]),
        gas_limit=number_of(env["currentGasLimit"]),
        coinbase=address_of(env["currentCoinbase"]),
        difficulty=number_of(env["currentDifficulty"]),
        gas_price=number_of(message["gasPrice"]),
        origin=address_of(message["origin"]),
        ancestors=ancestors_of(number),
    )
    outcome = machine.call(
        target,
        bytes_of(message["data"]),
        sender=address_of(message["caller"]),
        value=number_of(message["value"]),
        gas=number_of(message["gas"]),
        no_transfer=True,
    )
    return machine, outcome


def digest_of(outcome: Any) -> bytes:
    """Returns the hash of the frame's logs."""
    logs = (
        Log(address, tuple(topic.to_bytes(32, "big") for topic in topics), data)
        for address, topics, data in outcome.logs
    )
    return hash_of_logs(tuple(logs))


def compare_state(test: Mapping[str, Any], machine: Any) -> Mismatch | None:
    """Compares all accounts of ``pre`` and ``post``.

    An account that ``post`` lacks must not exist.
    """
    post = accounts_of(test["post"])
    for address in post.keys() | accounts_of(test["pre"]).keys():
        wanted, found = post.get(address), machine.account(address)
        if found is not None:
            found["storage"] = machine.storage_items(address)
        if found != wanted:
            return Mismatch(f"0x{address.hex()}: {wanted}", str(found))
    return None
