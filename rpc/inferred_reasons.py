"""Infers why a call reverted without data, from the contract's ABI and the last steps.

The cases and texts are those of Hardhat, so that test suites and people recognise them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final

from msgspec import Struct

from fastevm.evm.contracts import AbiDecodingError, Function
from fastevm.rpc.contract_files import LIBRARY
from fastevm.tracing import LastStep

REVERTED: Final = "execution reverted"  # the call tracer's error of a revert
OUT_OF_GAS_ERROR: Final = "out of gas"
NOT_STARTED: Final = ("insufficient balance", "max call depth")  # errors of calls that never began

WRONG_PARAMETERS: Final = "function was called with incorrect parameters"
NOT_PAYABLE: Final = "non-payable function was called with value {}"
NO_FALLBACK: Final = "function selector was not recognized and there's no fallback function"
NO_RECEIVE: Final = (
    "function selector was not recognized and there's no fallback nor receive function"
)
FALLBACK_NOT_PAYABLE: Final = "fallback function is not payable and was called with value {}"
RECEIVE_NOT_PAYABLE: Final = (
    "there's no receive function, fallback function is not payable and was called with value {}"
)
CALLED_LIBRARY: Final = "library was called directly"
NO_CONTRACT: Final = "function call to a non-contract account"
RETURN_SIZE: Final = "function returned an unexpected amount of data"
CALL_FAILED: Final = "function call failed to execute"
CALL_OUT_OF_GAS: Final = "contract call run out of gas and made the transaction revert"

SELECTOR: Final = 4
WORD: Final = 32
# number of last steps that contain solc's check of the called account or of the result
NEAR: Final = 24

LT, SLT, EXTCODESIZE, RETURNDATASIZE, REVERT = 0x10, 0x12, 0x3B, 0x3D, 0xFD
CALLS: Final = frozenset((0xF0, 0xF1, 0xF2, 0xF4, 0xF5, 0xFA))  # calls and creations

Json = dict[str, Any]


class FailedFrame(Struct, frozen=True):
    """The frame in which a failure began. The top frame has ``depth`` 1.

    ``abi`` is the ABI of the contract, None if it is unknown. ``steps`` returns the last steps of
    the frame in execution order.
    """

    frame: Json
    depth: int
    abi: Sequence[Json] | None
    code: bytes
    steps: Callable[[], Sequence[LastStep]]


def inferred_reason(failed: FailedFrame) -> str | None:
    """Returns why a frame failed without data; None if that cannot be inferred."""
    error = str(failed.frame.get("error", ""))
    if error != REVERTED:
        if failed.depth == 1:
            return None
        if error.startswith(NOT_STARTED):
            return CALL_FAILED
        return CALL_OUT_OF_GAS if error.startswith(OUT_OF_GAS_ERROR) else None
    if not failed.frame["type"].startswith("CREATE") and failed.abi is not None:
        found = _refused(failed, failed.abi)
        if found is not None:
            return found
    return _after_a_call(failed.steps())


# --- what the contract refuses before its function runs -------------------------------------------


def _refused(failed: FailedFrame, abi: Sequence[Json]) -> str | None:
    """Returns why the contract ran no function, inferred from the call alone, without its steps."""
    if failed.frame.get("calls"):
        return None  # a function ran
    data = bytes.fromhex(failed.frame.get("input", "0x")[2:])
    value = int(failed.frame.get("value", "0x0"), 16)
    function = _function(abi, data[:SELECTOR])
    is_library = LIBRARY.match(failed.code) is not None
    if function is None:  # the ABI of a library has only functions that read
        is_direct = is_library and failed.frame["type"] != "DELEGATECALL"
        return CALLED_LIBRARY if is_direct else _no_function(abi, data, value)
    if value and function.mutability != "payable" and not is_library:
        return NOT_PAYABLE.format(value)
    return None if _is_decodable(function, data[SELECTOR:]) else WRONG_PARAMETERS


def _no_function(abi: Sequence[Json], data: bytes, value: int) -> str | None:
    kinds = {item.get("type"): item.get("stateMutability") for item in abi}
    lacks_receive = not data and "receive" not in kinds
    if not data and "receive" in kinds:
        return None
    if "fallback" not in kinds:
        return NO_RECEIVE if lacks_receive else NO_FALLBACK
    if value and kinds["fallback"] != "payable":
        return (RECEIVE_NOT_PAYABLE if lacks_receive else FALLBACK_NOT_PAYABLE).format(value)
    return None


def _function(abi: Sequence[Json], selector: bytes) -> Function | None:
    for item in abi:
        if item.get("type") == "function" and len(selector) == SELECTOR:
            try:
                function = Function(item)
                if function.selector == selector:
                    return function
            except (ValueError, KeyError, TypeError):  # a type that this ABI reader does not know
                continue
    return None


def _is_decodable(function: Function, data: bytes) -> bool:
    try:
        function.decode_inputs(data)
    except AbiDecodingError:
        return False
    return True


# --- what the last steps show ---------------------------------------------------------------------


def _after_a_call(steps: Sequence[LastStep]) -> str | None:
    """Returns the reason if one of solc's checks before or after a call failed, else None."""
    if not steps or steps[-1].op != REVERT:
        return None
    if 0 in _results(steps[-NEAR:], EXTCODESIZE):
        return NO_CONTRACT
    last = max((at for at, step in enumerate(steps) if step.op in CALLS), default=None)
    if last is None or last + 1 == len(steps) or steps[last + 1].top != 1:
        return None
    after = steps[last + 1 :]
    sizes = _results(after, RETURNDATASIZE)
    too_short = any(
        step.op in (LT, SLT)
        and step.top in sizes
        and step.top < step.second
        and step.second % WORD == 0
        for step in after[-NEAR:]
    )
    return RETURN_SIZE if too_short else None


def _results(steps: Sequence[LastStep], op: int) -> set[int]:
    """Returns the results of an opcode that pushes a word."""
    return {after.top for step, after in pairwise(steps) if step.op == op}
