"""Estimates gas: the lowest gas limit with which a call succeeds, within 1.5 %."""

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Final

from fastevm.core.simulation.values import (
    DEFAULT_GAS_CAP,
    DEFAULT_TIMEOUT,
    AccountOverride,
    BlockOverrides,
    CallOutcome,
    CallRequest,
    CallResult,
    StateView,
    has_one_transfer_price,
    is_transfer,
)
from fastevm.core.state.remote import RemoteState
from fastevm.errors import InvalidTransaction
from fastevm.simulate.calls import AnyAttempt, asked_ahead, attempt_of
from fastevm.simulate.l1_charge import estimated_l1_gas, pays_for_l1
from fastevm.simulate.simple_call import SimpleOutcome

TRANSFER_GAS: Final = 21_000
ESTIMATE_ERROR_RATIO: Final = 0.015  # the search ends at this relative gap, as in geth
CALL_STIPEND: Final = 2_300


def estimate_gas(
    view: StateView,
    request: CallRequest,
    *,
    state_overrides: Mapping[bytes, AccountOverride] | None = None,
    block_overrides: BlockOverrides | None = None,
    gas_cap: int = DEFAULT_GAS_CAP,
    timeout: float = DEFAULT_TIMEOUT,
    shows_base_fee: bool = False,
) -> int | CallResult:
    """Returns a gas limit with which the call succeeds, at most 1.5 % above the lowest.

    If the call fails even with the highest gas limit, returns the result of the call. Searches like
    go-ethereum (eth/gasestimator), so that clients get the same numbers. On Arbitrum, adds the gas
    for the L1 data fee. Raises the errors of ``call``, and InvalidTransaction with code
    ``gas_required_exceeds_allowance``.
    """
    remote: RemoteState | None = view.layer.remote_state
    if remote is None:
        return _estimate(
            view, request, state_overrides, block_overrides, gas_cap, timeout, shows_base_fee
        )
    arguments = (
        view, request, state_overrides, block_overrides, gas_cap, timeout, shows_base_fee,
    )  # fmt: skip
    return remote.run_resolved(partial(_estimate, *arguments), asked_ahead(request))


def _estimate(
    view: StateView,
    request: CallRequest,
    state_overrides: Mapping[bytes, AccountOverride] | None,
    block_overrides: BlockOverrides | None,
    gas_cap: int,
    timeout: float,
    shows_base_fee: bool,
) -> int | CallResult:
    found = _search(
        view, request, state_overrides, block_overrides, gas_cap, timeout, shows_base_fee
    )
    if isinstance(found, CallResult) or not pays_for_l1(view, request):
        return found
    return found + estimated_l1_gas(view, request)


def _search(
    view: StateView,
    request: CallRequest,
    state_overrides: Mapping[bytes, AccountOverride] | None,
    block_overrides: BlockOverrides | None,
    gas_cap: int,
    timeout: float,
    shows_base_fee: bool,
) -> int | CallResult:
    attempt = attempt_of(view, request, state_overrides, block_overrides, shows_base_fee)
    high = upper_bound(attempt, gas_cap)
    pays_only = is_transfer(attempt.view, request, attempt.state_overrides)
    has_one_price = has_one_transfer_price(attempt.schedule)
    if pays_only and has_one_price and high >= TRANSFER_GAS:
        # The run makes the same checks as a call. If it is refused, the search reports the reason.
        with suppress(InvalidTransaction):
            if attempt.run(TRANSFER_GAS, timeout).success:
                return TRANSFER_GAS
    try:
        outcome = attempt.run(high, timeout)
    except InvalidTransaction as error:
        if error.code in ("intrinsic_gas", "floor_gas"):
            raise exceeds_allowance(high) from None
        raise
    if not outcome.success:
        if outcome.error == "out of gas":
            raise exceeds_allowance(high)
        return CallResult(
            success=False,
            output=outcome.output,
            gas_used=outcome.gas_used,
            error=outcome.error,
            reverted=outcome.reverted,
        )
    if pays_only and not has_one_price and succeeds(attempt, outcome.max_used_gas, timeout):
        return outcome.max_used_gas
    return narrowed(attempt, outcome, high, timeout)


def narrowed(
    attempt: AnyAttempt, outcome: CallOutcome | SimpleOutcome, high: int, timeout: float
) -> int:
    """Returns a sufficient gas limit, found by bisection between the gas used and ``high``."""
    low = outcome.gas_used - 1
    optimistic = (outcome.max_used_gas + CALL_STIPEND) * 64 // 63
    if optimistic < high:
        if succeeds(attempt, optimistic, timeout):
            high = optimistic
        else:
            low = optimistic
    while low + 1 < high and (high - low) / high >= ESTIMATE_ERROR_RATIO:
        middle = min((high + low) // 2, low * 2)
        if succeeds(attempt, middle, timeout):
            high = middle
        else:
            low = middle
    return high


def upper_bound(attempt: AnyAttempt, gas_cap: int) -> int:
    """Returns the highest gas limit to try.

    This is the gas limit of the call, or that of the block if the call has none. It is at most the
    cap of the fork, the gas that the sender can pay for, and ``gas_cap`` (0: no cap).
    """
    request, high = attempt.request, attempt.gas_limit
    if request.gas is not None and request.gas >= TRANSFER_GAS:
        high = request.gas
    rules = attempt.schedule.parameters
    cap = int(rules["tx_total_gas_cap" if rules["state_gas_version"] else "tx_gas_cap"])
    if cap:
        high = min(high, cap)
    price = request.gas_price or request.max_fee_per_gas or 0
    if price:
        funds = attempt.funds() - request.value
        if funds < 0:
            raise InvalidTransaction("insufficient_funds", "insufficient funds for transfer")
        high = min(high, funds // price)
    return min(high, gas_cap) if gas_cap else high


def succeeds(attempt: AnyAttempt, gas: int, timeout: float) -> bool:
    """Returns whether the call succeeds with this gas limit."""
    try:
        return attempt.run(gas, timeout).success
    except InvalidTransaction as error:
        if error.code in ("intrinsic_gas", "floor_gas"):
            return False
        raise


def exceeds_allowance(gas: int) -> InvalidTransaction:
    return InvalidTransaction(
        "gas_required_exceeds_allowance", f"gas required exceeds allowance ({gas})", have=gas
    )
