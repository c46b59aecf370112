"""The access list of a call, found by running it until the list no longer grows."""

from dataclasses import dataclass, replace
from typing import Final

from fastevm.errors import InvalidTransaction
from fastevm.execution.fields import AccessListEntry
from fastevm.execution.transaction import Transaction
from fastevm.primitives import rlp
from fastevm.primitives.keccak import keccak256
from fastevm.simulate.calls import Attempt
from fastevm.simulate.engine.deadline import WATCHDOG
from fastevm.simulate.engine.runner import transaction_of
from fastevm.simulate.values import (
    DEFAULT_GAS_CAP,
    DEFAULT_TIMEOUT,
    BlockOverrides,
    CallOutcome,
    CallRequest,
    StateOverrides,
    StateView,
)
from fastevm.tracing.runner import TracedRunner
from fastevm.tracing.touches import TouchObserver
from fastevm.tracing.values import TracingError

ROUNDS_LIMIT: Final = 16  # runs of one request; a list that is still not stable then is an error
LAST_NONCE: Final = 2**64 - 1

Touched = dict[bytes, set[int]]


@dataclass(frozen=True, slots=True)
class AccessListResult:
    """The stable list, the gas of the call with it, and what the call failed with, if it did."""

    access_list: tuple[AccessListEntry, ...]
    gas_used: int
    error: str | None


def create_access_list(
    view: StateView,
    call: CallRequest,
    *,
    state_overrides: StateOverrides | None = None,
    gas_cap: int = DEFAULT_GAS_CAP,
    timeout: float = DEFAULT_TIMEOUT,
) -> AccessListResult:
    """The accounts and slots that ``call`` looks at on ``view`` (EIP-2930).

    Left out are sender, recipient, precompiles and authorities, unless one of their slots is
    looked at. Raises TracingError for a call that breaks a rule, in go-ethereum's words.
    """
    attempt = Attempt(view, call, state_overrides or {}, BlockOverrides())
    gas = gas_cap or attempt.environment.gas_limit if call.gas is None else call.gas
    gas = min(gas, gas_cap) if gas_cap else gas
    left_out: set[bytes] | None = None
    touched: Touched = {e.address: set(e.storage_keys) for e in call.access_list or ()}
    runner = TracedRunner()
    with WATCHDOG.watch(runner, timeout):
        for _ in range(ROUNDS_LIMIT):
            transaction = _prepared(runner, attempt, gas, touched)
            if left_out is None:
                left_out = _left_out(attempt, transaction)
                touched = {a: s for a, s in touched.items() if s or a not in left_out}
            observer = TouchObserver()
            outcome = _run(runner, transaction, observer)
            found = _joined(touched, observer, left_out)
            if found == touched:
                return _result(touched, outcome)
            touched = found
    raise TracingError(f"the access list is not stable after {ROUNDS_LIMIT} runs")


def _result(touched: Touched, outcome: CallOutcome) -> AccessListResult:
    error = outcome.error
    if outcome.reverted:
        error = "execution reverted"
    return AccessListResult(_entries(touched), outcome.gas_used, error)


def _entries(touched: Touched) -> tuple[AccessListEntry, ...]:
    return tuple(
        AccessListEntry(address, tuple(sorted(slots))) for address, slots in sorted(touched.items())
    )


def _prepared(runner: TracedRunner, attempt: Attempt, gas: int, touched: Touched) -> Transaction:
    """Open the runner, and give the transaction with the list so far."""
    runner.open(attempt.view, environment=attempt.environment)
    runner.override(attempt.plan)
    request = replace(attempt.request, access_list=_entries(touched))
    if not attempt.schedule.parameters["has_access_lists"]:
        request = replace(request, access_list=None)
    return transaction_of(request, gas, runner.nonce(request.sender), attempt.view)


def _run(runner: TracedRunner, transaction: Transaction, observer: TouchObserver) -> CallOutcome:
    try:
        return runner.trace(transaction, observer, as_call=True)
    except InvalidTransaction as error:
        name = "0x" + transaction.hash.hex()
        raise TracingError(f"failed to apply transaction: {name} err: {error.message}") from error


def _left_out(attempt: Attempt, transaction: Transaction) -> set[bytes]:
    """What is warm anyway, or no account of its own: see `create_access_list`."""
    precompiles = attempt.schedule.precompiles.values()
    addresses = {number.to_bytes(20, "big") for number in precompiles}
    sender = attempt.request.sender
    addresses.add(sender)
    addresses.add(transaction.to or _created_address(sender, transaction.nonce))
    chains = (0, attempt.view.config.chain_id)
    signed = zip(transaction.authorities, transaction.authorization_list, strict=True)
    addresses |= {
        authority
        for authority, entry in signed
        if authority is not None and entry.chain_id in chains and entry.nonce < LAST_NONCE
    }
    return addresses


def _created_address(creator: bytes, nonce: int) -> bytes:
    """The address of a contract that a transaction creates (Yellow Paper, section 7)."""
    return keccak256(rlp.encode((creator, nonce)))[-20:]


def _joined(touched: Touched, observer: TouchObserver, left_out: set[bytes]) -> Touched:
    """The list so far, and what was looked at beyond it."""
    found = {address: set(slots) for address, slots in touched.items()}
    for address in observer.accounts - left_out:
        found.setdefault(address, set())
    for address, slots in observer.slots.items():
        found.setdefault(address, set()).update(slots)
    return found
