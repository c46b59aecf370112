"""Tests that the `repr` of no record in the payments package shows a secret.

A `repr` may end up in a log. Bytes count as secret, and so do members with the names listed here,
unless a member is listed as public.
"""

import dataclasses
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from typing import Any, Final, get_type_hints

import pytest
from msgspec import Struct

pytest.importorskip("eth_account", reason="needs the extra payments")

NAMES: Final = {
    "bearer", "call", "claim", "data", "extensions", "fields", "headers", "holder", "inner",
    "password", "payload", "previous", "private_key", "sealed", "secret", "signature",
    "url",
}  # fmt: skip
PUBLIC: Final = {
    "authorization.Terms.nonce", "authorization.Cancellation.nonce", "escrow.PaymentInfo.salt",
    "erc6492.Wrapped.call",  # calldata that deploys a wallet, which is public
    "outbox.Notice.data",  # what webhooks receive
    "x402.messages.Payment.nonce", "x402.messages.Payment.payer",
}  # fmt: skip
ROOT: Final = "fastevm.payments"


def modules() -> Iterator[Any]:
    package = importlib.import_module(ROOT)
    for found in pkgutil.walk_packages(package.__path__, f"{ROOT}."):
        # skipped, because it needs an optional dependency and has no records
        if found.name != f"{ROOT}.postgres":
            yield importlib.import_module(found.name)


def records() -> dict[str, type]:
    """Returns every dataclass, Struct and NamedTuple of the package by name."""
    return {
        f"{module.__name__.removeprefix(f'{ROOT}.')}.{name}": kind
        for module in modules()
        for name, kind in vars(module).items()
        if inspect.isclass(kind) and kind.__module__ == module.__name__ and members(kind)
    }


def members(kind: type) -> list[str]:
    if dataclasses.is_dataclass(kind):
        return [member.name for member in dataclasses.fields(kind)]
    if issubclass(kind, Struct):
        return list(kind.__struct_fields__)
    return list(getattr(kind, "_fields", ()))


def shown(kind: type) -> set[str]:
    """Returns the members that a record's repr shows."""
    if dataclasses.is_dataclass(kind):
        return {member.name for member in dataclasses.fields(kind) if member.repr}
    return set(members(kind)) - getattr(kind.__repr__, "hidden", frozenset())


def is_secret(record: str, kind: type, member: str) -> bool:
    if f"{record}.{member}" in PUBLIC:
        return False
    annotation = str(get_type_hints(kind, include_extras=True).get(member, ""))
    return member in NAMES or "bytes" in annotation


def test_no_record_shows_a_secret() -> None:
    found = records()
    assert len(found) > 50
    wrong = [
        f"{record}.{member}"
        for record, kind in found.items()
        for member in shown(kind)
        if is_secret(record, kind, member)
    ]
    assert sorted(wrong) == []


def test_what_is_listed_as_public_exists() -> None:
    found = records()
    for entry in PUBLIC:
        record, _, member = entry.rpartition(".")
        assert member in members(found[record]), entry
