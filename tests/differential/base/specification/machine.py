"""Calls native contracts by address: rejects delegate calls and value, and charges gas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .abi import error, selector
from .factory import FACTORY, PREFIX, Factory
from .journal import Frame, Journal, OutOfGas, Revert
from .policies import ACTIVATION, POLICIES, POLICY_FEATURE, Activation, Policies, require_feature
from .token import Token, Undispatched, run

FIXED = (FACTORY, ACTIVATION, POLICIES)
CALLDATA_WORD_GAS = 6
# In Beryl, the factory and the policy registry report shorter calldata as undecodable (selector and
# one word).
NEEDS_ARGUMENTS = 36


@dataclass
class Result:
    """The outcome of a call. ``gas_left`` is 0 if the call ran out of gas."""

    success: bool
    output: bytes
    gas_left: int
    ran_out: bool = False


def is_native(address: bytes) -> bool:
    return address in FIXED or (address[:10] == PREFIX and address[10] < 2)


def call(
    journal: Journal,
    *,
    fork: int,
    chain_id: int,
    now: int,
    caller: bytes,
    address: bytes,
    data: bytes,
    gas: int,
    value: int = 0,
    is_static: bool = False,
    is_direct: bool = True,
) -> Result:
    """Runs the call frame of a native contract, after the caller has paid for the account access.

    ``is_direct``: the call is a CALL or STATICCALL, not a CALLCODE or DELEGATECALL. If the call
    fails, the transfer of ``value`` is reverted with all other changes.
    """
    frame = Frame(journal, fork, chain_id, now, caller, gas, is_static)
    mark = journal.mark()
    try:
        if not is_direct:
            raise error("DelegateCallNotAllowed()")
        if value:
            journal.move(caller, address, value)
        output = execute(frame, address, data, value)
    except Revert as refused:
        journal.revert(mark)
        return Result(False, refused.output, frame.gas)
    except OutOfGas:
        journal.revert(mark)
        return Result(False, b"", 0, ran_out=True)
    return Result(True, output, frame.gas)


def execute(frame: Frame, address: bytes, data: bytes, value: int) -> bytes:
    if value and (address != ACTIVATION or frame.fork >= 2):
        raise error("NonPayable()")
    frame.charge(CALLDATA_WORD_GAS * ((len(data) + 31) // 32))
    if address == ACTIVATION:
        return run(Activation(frame).functions(), lambda _: None, data, frame.fork)
    if address == POLICIES:
        contract = Policies(frame)
        functions = {s: gated(frame, s, f) for s, f in contract.functions().items()}
        return dispatch(frame, functions, policy_enums(frame.fork), data, "IPolicyRegistryCalls")
    if address == FACTORY:
        return dispatch(frame, Factory(frame).functions(), factory_enums, data, "IB20FactoryCalls")
    if not frame.account(address):
        raise Revert
    return Token(frame, address).dispatch(data)


def dispatch(
    frame: Frame, functions: dict[str, Any], enums: Any, data: bytes, interface: str
) -> bytes:
    """Calls `run`. In Beryl, too short calldata raises an error that names the whole interface."""
    known = any(selector(s) == data[:4] for s in functions)
    if frame.fork == 1 and known and len(data) < NEEDS_ARGUMENTS:
        text = f'type check failed for "{interface}" with data: {data.hex()}'
        raise Undispatched(data[:4] + text.encode())
    return run(functions, enums, data, frame.fork)


def gated(frame: Frame, signature: str, function: Any) -> Any:
    """Returns the function, preceded by a feature check unless it is a view.

    The check reverts if the policy registry's feature is not active.
    """
    if signature in Policies.READS:
        return function

    def checked(*values: Any) -> bytes:
        require_feature(frame, POLICY_FEATURE)
        output: bytes = function(*values)
        return output

    return checked


def policy_enums(fork: int) -> Any:
    return lambda signature: Policies.ENUMS[fork] if "uint8" in signature else None


def factory_enums(signature: str) -> int | None:
    return 2 if "uint8" in signature else None
