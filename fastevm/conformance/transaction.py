"""Runs transaction tests: decoding gives hash, sender and intrinsic gas, or an error."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from fastevm.conformance.fields import bytes_of, number_of
from fastevm.conformance.runner import Case, Mismatch
from fastevm.conformance.snapshots import rules_meant
from fastevm.core.execution.transaction.transaction_rules import validate_transaction
from fastevm.core.spec.forks import fork_named
from fastevm.core.spec.schedule import schedule_for
from fastevm.errors import InvalidTransaction, TransactionDecodeError


def cases(name: str, content: Mapping[str, Any]) -> Iterator[Case]:
    """Yields a case for each fork of each test of the file."""
    for title, test in content.items():
        for name_there, wanted in test["result"].items():
            fork = rules_meant(name_there, test)
            yield f"{title}[{fork}]", fork, partial(run, test["txbytes"], fork, wanted)


def run(txbytes: str, fork: str, wanted: Mapping[str, Any]) -> Mismatch | None:
    """Decodes and validates a transaction without a state."""
    schedule = schedule_for(fork_named(fork))
    try:
        digest, sender, gas = validate_transaction(bytes_of(txbytes), schedule)
    except (InvalidTransaction, TransactionDecodeError) as error:
        return None if "exception" in wanted else Mismatch("accepted", str(error))
    if "exception" in wanted:
        return Mismatch(f"refused with {wanted['exception']}", "accepted")
    found = {"hash": digest, "sender": sender, "intrinsicGas": gas}
    expected = {
        "hash": bytes_of(wanted["hash"]),
        "sender": bytes_of(wanted["sender"]),
        "intrinsicGas": number_of(wanted["intrinsicGas"]),
    }
    return None if found == expected else Mismatch(str(expected), str(found))
