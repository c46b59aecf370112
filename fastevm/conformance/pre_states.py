"""Builds the states before cases: complete in memory, or remote with values fetched on demand."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from fastevm.conformance.runner import Apart, Case, Outcome, Suite
from fastevm.core.state.layer import Layer
from fastevm.core.state.source import Found, RemoteAccount, Wanted
from fastevm.errors import ForkError

Accounts = Mapping[bytes, Mapping[str, Any]]  # as for Layer.of

EMPTY: Final = "empty"
PRE: Final = "pre"
FORKED: Final = {
    EMPTY: "above an empty remote state",
    PRE: "a remote state, of which every value is fetched",
}
"""Options for the state before a case if it is not in memory."""

UNREADABLE: Final = "an account that cannot be read from a remote state"

_where: str | None = None


class Recorded:
    """A source that has all accounts in memory and returns only the wanted values."""

    chain_id = 1
    block_number = 0
    block_hash = bytes(32)

    def __init__(self, accounts: Accounts) -> None:
        self.accounts = accounts

    def fetch(self, wanted: Wanted) -> Found:
        """Returns the wanted values. Raises ForkError for block hashes, which the tests contain."""
        if wanted.block_hashes:
            raise ForkError("tests: block hashes are not remote")
        found = Found()
        for address in wanted.accounts:
            fields = self.accounts.get(address, {})
            found.accounts[address] = RemoteAccount(
                fields.get("balance", 0), fields.get("nonce", 0), fields.get("code", b"")
            )
        for address, slot in wanted.slots:
            storage = self.accounts.get(address, {}).get("storage", {})
            found.slots[address, slot] = storage.get(slot, 0)
        return found


def layer_of(accounts: Accounts) -> Layer:
    """Returns the state before a case: in memory or remote, as selected."""
    if _where == PRE:
        return Layer.remote(Recorded(accounts))
    if _where == EMPTY:
        return Layer.remote(Recorded({})).with_accounts(accounts)
    return Layer.of(accounts)


def anew(layer: Layer) -> Layer:
    """Returns the state ``layer`` as it was when it was loaded.

    A remote state forgets the values that it has fetched.
    """
    source = None if layer.remote_state is None else layer.remote_state.source
    if isinstance(source, Recorded) and source.accounts:
        return Layer.remote(source)
    return layer


def whole(layer: Layer) -> Layer:
    """Returns a copy of the whole state in memory, because only such a state has a root."""
    source = None if layer.remote_state is None else layer.remote_state.source
    if not isinstance(source, Recorded) or not source.accounts:
        return layer
    found: dict[bytes, dict[str, Any]] = {}
    for address in source.accounts.keys() | set(layer.addresses()):
        account = layer.account(address)
        if account is None:
            continue
        before = source.accounts.get(address, {}).get("storage", {})
        slots = before.keys() | layer.storage_items(address).keys()
        found[address] = {
            "balance": account.balance,
            "nonce": account.nonce,
            "code": layer.code(address),
            "storage": {slot: layer.storage(address, slot) for slot in slots},
        }
    return Layer.of(found)


def is_readable(accounts: Accounts) -> bool:
    """Returns whether `RemoteAccount` can represent every account.

    `RemoteAccount` cannot represent empty accounts, nor storage without nonce and code (EIP-7610).
    """
    return all(
        fields.get("nonce") or fields.get("code")
        or (fields.get("balance") and not fields.get("storage"))
        for fields in accounts.values()
    )  # fmt: skip


def forked(where: str, suite: Suite) -> Suite:
    """Returns the suite with remote states. ``where`` is a key of `FORKED`."""
    return partial(_cases_over, where, suite)


def _cases_over(where: str, suite: Suite, name: str, content: Any) -> Iterator[Case]:
    for case, fork, run in suite(name, content):
        yield case, fork, partial(_run_over, where, run)


def _run_over(where: str, run: Callable[[], Outcome]) -> Outcome:
    with _states(where):
        return run()


@contextmanager
def _states(where: str) -> Iterator[None]:
    global _where
    _where = where
    try:
        yield
    finally:
        _where = None


def unreadable(accounts: Accounts) -> Apart | None:
    """Returns why a case cannot run on the selected remote state, or None if it can."""
    return Apart(UNREADABLE) if _where == PRE and not is_readable(accounts) else None
