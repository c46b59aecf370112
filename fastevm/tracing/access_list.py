"""Computes the access list of a call by repeating it until the list no longer grows."""

from typing import Final

from msgspec import Struct

from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.transaction.transaction_fields import AccessListEntry
from fastevm.core.native.arbitrum.storage import ARBITRUM_PRECOMPILES, STATE_ADDRESS
from fastevm.core.primitives import rlp
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.primitives.replace import replace
from fastevm.core.simulation.deadline import time_limit
from fastevm.core.simulation.runner import transaction_of
from fastevm.core.simulation.values import (
    DEFAULT_GAS_CAP,
    DEFAULT_TIMEOUT,
    NO_BLOCK_OVERRIDES,
    CallOutcome,
    CallRequest,
    StateOverrides,
    StateView,
)
from fastevm.core.state.remote import resolved
from fastevm.errors import InvalidTransaction
from fastevm.simulate.calls import Attempt, asked_ahead
from fastevm.tracing.access_observer import AccessObserver
from fastevm.tracing.runner import TracedRunner
from fastevm.tracing.values import TracingError

ROUNDS_LIMIT: Final = 16  # executions per request, after which an unstable list is an error
LAST_NONCE: Final = 2**64 - 1

Accessed = dict[bytes, set[int]]


class AccessListResult(Struct, frozen=True):
    """The final access list, the gas used with this list, and the error of the call or None."""

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
    shows_base_fee: bool = False,
) -> AccessListResult:
    """Returns the accounts and slots that ``call`` accesses on ``view`` (EIP-2930).

    Omits sender, recipient, precompiles and authorities, unless the call accesses one of their
    slots. ``shows_base_fee``: see `fastevm.simulate.calls.call`. Raises TracingError, with
    go-ethereum's message, for an invalid call.
    """
    return resolved(
        view.layer,
        lambda: _create(view, call, state_overrides or {}, gas_cap, timeout, shows_base_fee),
        asked_ahead(call),
    )


def _create(
    view: StateView,
    call: CallRequest,
    state_overrides: StateOverrides,
    gas_cap: int,
    timeout: float,
    shows_base_fee: bool,
) -> AccessListResult:
    attempt = Attempt(
        view, call, state_overrides, NO_BLOCK_OVERRIDES, shows_base_fee=shows_base_fee
    )
    gas = gas_cap or attempt.environment.gas_limit if call.gas is None else call.gas
    gas = min(gas, gas_cap) if gas_cap else gas
    left_out: set[bytes] | None = None
    accessed: Accessed = {e.address: set(e.storage_keys) for e in call.access_list or ()}
    runner = TracedRunner()
    with time_limit(runner, timeout):
        for _ in range(ROUNDS_LIMIT):
            transaction = _prepared(runner, attempt, gas, accessed)
            if left_out is None:
                left_out = _left_out(attempt, transaction)
                accessed = {a: s for a, s in accessed.items() if s or a not in left_out}
            observer = AccessObserver()
            outcome = _run(runner, transaction, observer)
            found = _joined(accessed, observer, left_out)
            if found == accessed:
                return _result(accessed, outcome)
            accessed = found
    raise TracingError(f"the access list is not stable after {ROUNDS_LIMIT} runs")


def _result(accessed: Accessed, outcome: CallOutcome) -> AccessListResult:
    error = outcome.error
    if outcome.reverted:
        error = "execution reverted"
    return AccessListResult(_entries(accessed), outcome.gas_used, error)


def _entries(accessed: Accessed) -> tuple[AccessListEntry, ...]:
    return tuple(
        AccessListEntry(address, tuple(sorted(slots)))
        for address, slots in sorted(accessed.items())
    )


def _prepared(runner: TracedRunner, attempt: Attempt, gas: int, accessed: Accessed) -> Transaction:
    """Opens the runner and returns the transaction with the access list so far."""
    runner.open(attempt.view, environment=attempt.environment)
    runner.override(attempt.plan)
    request = replace(attempt.request, access_list=_entries(accessed))
    if not attempt.schedule.parameters["has_access_lists"]:
        request = replace(request, access_list=None)
    return transaction_of(request, gas, runner.nonce(request.sender), attempt.view)


def _run(runner: TracedRunner, transaction: Transaction, observer: AccessObserver) -> CallOutcome:
    try:
        return runner.trace(transaction, observer, as_call=True)
    except InvalidTransaction as error:
        name = "0x" + transaction.hash.hex()
        raise TracingError(f"failed to apply transaction: {name} err: {error.message}") from error


def _left_out(attempt: Attempt, transaction: Transaction) -> set[bytes]:
    """Returns the omitted addresses, which are warm without an access list.

    See `create_access_list`.
    """
    precompiles = attempt.schedule.precompiles.values()
    addresses = {number.to_bytes(20, "big") for number in precompiles}
    if attempt.schedule.parameters["arbos_version"]:
        addresses |= ARBITRUM_PRECOMPILES
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
    """Returns the address of a contract that a transaction creates (Yellow Paper, section 7)."""
    return keccak256(rlp.encode((creator, nonce)))[-20:]


def _joined(accessed: Accessed, observer: AccessObserver, left_out: set[bytes]) -> Accessed:
    """Returns the access list, extended by the accesses of the last execution."""
    found = {address: set(slots) for address, slots in accessed.items()}
    for address in observer.accounts - left_out:
        found.setdefault(address, set())
    for address, slots in observer.slots.items():
        if address != STATE_ADDRESS:  # slots of ArbOS are always warm
            found.setdefault(address, set()).update(slots)
    return found
