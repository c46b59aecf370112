"""One message call on a state, and the least gas with which it succeeds."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from fastevm.errors import InvalidTransaction
from fastevm.execution.senders import recover_senders
from fastevm.execution.transaction import Transaction
from fastevm.simulate.deadline import WATCHDOG, thread_owned
from fastevm.simulate.environment import environment_of, refuse_block_content
from fastevm.simulate.overrides import apply_overrides
from fastevm.simulate.plain import PlainCaller, PlainOutcome, is_plain
from fastevm.simulate.runner import Runner
from fastevm.simulate.values import (
    DEFAULT_GAS_CAP,
    DEFAULT_TIMEOUT,
    NO_BLOCK_OVERRIDES,
    AccountOverride,
    BlockOverrides,
    CallOutcome,
    CallRequest,
    CallResult,
    SimulationError,
    StateView,
)

PLAIN_TRANSFER_GAS = 21_000
ESTIMATE_ERROR_RATIO = 0.015  # the search ends when the bounds are this close, as other nodes do it
CALL_STIPEND = 2_300


def thread_runner() -> Runner:
    """The runner of the calling thread."""
    return thread_owned(Runner)


class Attempt:
    """A request with everything that stays the same however often it is run."""

    def __init__(
        self,
        view: StateView,
        request: CallRequest,
        state_overrides: Mapping[bytes, AccountOverride],
        block_overrides: BlockOverrides,
    ) -> None:
        refuse_block_content(block_overrides)
        check_prices(request, view.config.chain_id)
        self.schedule = schedule_of(view, block_overrides)
        self.view, self.request = replace(view, schedule=self.schedule), request
        self.state_overrides = state_overrides
        self.environment = environment_of(
            view.header,
            self.schedule,
            view.config.chain_id,
            block_overrides,
            free_gas=not (
                request.gas_price or request.max_fee_per_gas or request.max_priority_fee_per_gas
            ),
            free_blobs=not request.max_fee_per_blob_gas,
        )

    @property
    def gas_limit(self) -> int:
        """The block's."""
        return self.environment.gas_limit

    def funds(self) -> int:
        """What the sender has."""
        return self.open().balance(self.request.sender)

    def open(self) -> Runner:
        """A runner on the view's state with the overrides in place."""
        runner = thread_runner()
        runner.open(self.view, environment=self.environment)
        apply_overrides(runner, self.state_overrides)
        return runner

    def run(self, gas: int, timeout: float) -> CallOutcome:
        """Run the request with this much gas. InvalidTransaction, or SimulationError on timeout."""
        runner = self.open()
        nonce = runner.nonce(self.request.sender)
        pair = transactions_of(self.request, gas, nonce, self.view)
        with WATCHDOG.watch(runner, timeout):
            try:
                return runner.simulate(pair[0], validation=False)
            except InvalidTransaction as error:
                raise supplied(error, gas) from None
            except SimulationError as error:
                raise timed_out(error, timeout) from None


class PlainAttempt:
    """The same for a request without lists, and without overrides: the short way."""

    state_overrides: Mapping[bytes, AccountOverride] = MappingProxyType({})

    def __init__(self, view: StateView, request: CallRequest) -> None:
        check_prices(request, view.config.chain_id)
        self.view, self.request, self.schedule = view, request, view.schedule
        self.caller = thread_owned(PlainCaller)
        self.caller.open(view, request)

    @property
    def gas_limit(self) -> int:
        """The block's."""
        return int(self.view.header.gas_limit)

    def funds(self) -> int:
        """What the sender has."""
        return self.caller.balance(self.request.sender)

    def run(self, gas: int, timeout: float) -> PlainOutcome:
        """As :meth:`Attempt.run`."""
        with WATCHDOG.watch(self.caller, timeout):
            try:
                return self.caller.run(gas)
            except InvalidTransaction as error:
                raise supplied(error, gas) from None
            except SimulationError as error:
                raise timed_out(error, timeout) from None


AnyAttempt = Attempt | PlainAttempt


def attempt_of(
    view: StateView,
    request: CallRequest,
    state_overrides: Mapping[bytes, AccountOverride] | None,
    block_overrides: BlockOverrides | None,
) -> AnyAttempt:
    """The short way where it leads to the same result."""
    unchanged = block_overrides is None or block_overrides is NO_BLOCK_OVERRIDES
    if unchanged and not state_overrides and is_plain(request):
        return PlainAttempt(view, request)
    return Attempt(view, request, state_overrides or {}, block_overrides or NO_BLOCK_OVERRIDES)


def call(
    view: StateView,
    request: CallRequest,
    *,
    state_overrides: Mapping[bytes, AccountOverride] | None = None,
    block_overrides: BlockOverrides | None = None,
    gas_cap: int = DEFAULT_GAS_CAP,
    timeout: float = DEFAULT_TIMEOUT,
) -> CallResult:
    """Run one call on ``view``; nothing is kept.

    ``gas_cap`` bounds and defaults the call's gas (0: no bound). Nonces, the sender's code and,
    when no price is offered, fees do not matter; funds for price and value do. Raises
    InvalidTransaction for a call that breaks a rule, SimulationError for bad overrides and when
    ``timeout`` (seconds) has passed. A revert or halt is a result.
    """
    attempt = attempt_of(view, request, state_overrides, block_overrides)
    gas = gas_cap or attempt.gas_limit if request.gas is None else request.gas
    outcome = attempt.run(min(gas, gas_cap) if gas_cap else gas, timeout)
    return CallResult(
        success=outcome.success,
        output=outcome.output,
        gas_used=outcome.gas_used,
        error=outcome.error,
        reverted=outcome.reverted,
    )


def estimate_gas(
    view: StateView,
    request: CallRequest,
    *,
    state_overrides: Mapping[bytes, AccountOverride] | None = None,
    block_overrides: BlockOverrides | None = None,
    gas_cap: int = DEFAULT_GAS_CAP,
    timeout: float = DEFAULT_TIMEOUT,
) -> int | CallResult:
    """A gas limit with which the call succeeds, at most 1.5 % over the least; or the failure.

    The search is the one of go-ethereum (eth/gasestimator), so that clients see the same numbers.
    Raises as ``call`` does, and InvalidTransaction ``gas_required_exceeds_allowance``.
    """
    attempt = attempt_of(view, request, state_overrides, block_overrides)
    high = upper_bound(attempt, gas_cap)
    if is_plain_transfer(attempt) and succeeds(attempt, PLAIN_TRANSFER_GAS, timeout):
        return PLAIN_TRANSFER_GAS
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
    return narrowed(attempt, outcome, high, timeout)


def narrowed(
    attempt: AnyAttempt, outcome: CallOutcome | PlainOutcome, high: int, timeout: float
) -> int:
    """Bisect between what was used and what was enough."""
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
    """The most gas that it may have: its own, the block's, the fork's, the funds', the node's."""
    request, high = attempt.request, attempt.gas_limit
    if request.gas is not None and request.gas >= PLAIN_TRANSFER_GAS:
        high = request.gas
    cap = int(attempt.schedule.parameters["tx_gas_cap"])
    if cap:
        high = min(high, cap)
    price = request.gas_price or request.max_fee_per_gas or 0
    if price:
        funds = attempt.funds() - request.value
        if funds < 0:
            raise InvalidTransaction("insufficient_funds", "insufficient funds for transfer")
        high = min(high, funds // price)
    return min(high, gas_cap) if gas_cap else high


def is_plain_transfer(attempt: AnyAttempt) -> bool:
    """Ether to an account without code, without data."""
    request = attempt.request
    if request.data or request.to is None or request.access_list or request.authorization_list:
        return False
    override = attempt.state_overrides.get(request.to)
    code = attempt.view.layer.code(request.to) if override is None else override.code
    return not code


def succeeds(attempt: AnyAttempt, gas: int, timeout: float) -> bool:
    """Whether the call ends well with this much gas."""
    try:
        return attempt.run(gas, timeout).success
    except InvalidTransaction as error:
        if error.code in ("intrinsic_gas", "floor_gas"):
            return False
        raise


def timed_out(error: SimulationError, timeout: float) -> SimulationError:
    """The same end in the words that nodes use for calls."""
    return SimulationError(error.reason, f"execution aborted (timeout = {timeout:g}s)")


def supplied(error: InvalidTransaction, gas: int) -> InvalidTransaction:
    """The same refusal in the words that nodes use for calls."""
    message = f"err: {error.message} (supplied gas {gas})"
    return InvalidTransaction(error.code, message, have=error.have, want=error.want)


def exceeds_allowance(gas: int) -> InvalidTransaction:
    return InvalidTransaction(
        "gas_required_exceeds_allowance", f"gas required exceeds allowance ({gas})"
    )


def schedule_of(view: StateView, overrides: BlockOverrides) -> Any:
    """The rules of the view's block, or of the time and number that overrides give it."""
    if overrides.number is None and overrides.time is None:
        return view.schedule
    header = view.header
    number = header.number if overrides.number is None else overrides.number
    timestamp = header.timestamp if overrides.time is None else overrides.time
    merged = bool(view.schedule.parameters["proof_of_stake"])
    return view.config.activations.at(number, timestamp, after_merge=merged)


def check_prices(request: CallRequest, chain_id: int) -> None:
    """What contradicts itself in a call object."""
    if request.gas_price is not None and (
        request.max_fee_per_gas is not None or request.max_priority_fee_per_gas is not None
    ):
        raise SimulationError(
            "conflicting_fees",
            "both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified",
        )
    if request.chain_id is not None and request.chain_id != chain_id:
        raise SimulationError(
            "chain_id_mismatch",
            f"chainId does not match node's (have={request.chain_id}, want={chain_id})",
        )


def transactions_of(
    request: CallRequest, gas: int, nonce: int, view: StateView
) -> tuple[Transaction, Transaction]:
    """The unsigned transaction that a call stands for: as it is run, and as the block shows it.

    The two differ when a gas price comes with lists that a legacy transaction has no room for: the
    lists count, and the block shows a legacy transaction without them, as go-ethereum does.
    """
    chain_id = view.config.chain_id
    legacy = request.gas_price is not None or not view.schedule.parameters["has_base_fee"]
    fields: dict[str, Any] = {
        "sender": request.sender,
        "to": request.to,
        "gas_limit": gas,
        "nonce": nonce if request.nonce is None else request.nonce,
        "value": request.value,
        "data": request.data,
    }
    lists = lists_of(request)
    if not legacy:
        fields["max_fee_per_gas"] = request.max_fee_per_gas or 0
        fields["max_priority_fee_per_gas"] = request.max_priority_fee_per_gas or 0
        transaction = built(fields | lists | {"chain_id": chain_id})
        return transaction, transaction
    price = request.gas_price or 0
    shown = built(fields | {"gas_price": price})
    if not lists:
        return shown, shown
    if request.blob_versioned_hashes is None and request.authorization_list is None:
        fields["gas_price"] = price
    else:
        fields["max_fee_per_gas"] = fields["max_priority_fee_per_gas"] = price
    return built(fields | lists | {"chain_id": chain_id}), shown


def lists_of(request: CallRequest) -> dict[str, Any]:
    """What a call carries beyond a plain message, as fields of `Transaction.build`."""
    lists: dict[str, Any] = {}
    if request.access_list is not None:
        lists["access_list"] = request.access_list
    if request.authorization_list is not None:
        lists["authorization_list"] = [
            (a.chain_id, a.address, a.nonce, a.y_parity, a.r, a.s)
            for a in request.authorization_list
        ]
    elif request.blob_versioned_hashes is not None:
        lists["blob_versioned_hashes"] = request.blob_versioned_hashes
        lists["max_fee_per_blob_gas"] = request.max_fee_per_blob_gas or 0
    return lists


def built(fields: dict[str, Any]) -> Transaction:
    """The transaction of these fields, its authorizations recovered."""
    transaction = Transaction.build(**fields)
    if "authorization_list" in fields:
        recover_senders([transaction], threads=1)
    return transaction
