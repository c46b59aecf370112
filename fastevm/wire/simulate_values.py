"""Payloads in the form of JSON-RPC as typed values: hex text, or ints and bytes as they are.

Unknown members are ignored and None is the same as absent. ValueError names the member that cannot
be read.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from fastevm.execution.fields import AccessListEntry, Authorization
from fastevm.simulate.values import (
    AccountOverride,
    BlockOverrides,
    BlockStateCalls,
    CallRequest,
    SimulatePayload,
)
from fastevm.types import Withdrawal
from fastevm.wire.native_values import address_of, bytes_of, quantity_of, word_of

Reader = Callable[[Any, str], Any]

_CALL: Final[dict[str, tuple[str, Reader]]] = {
    "from": ("sender", address_of),
    "to": ("to", address_of),
    "gas": ("gas", quantity_of),
    "gasPrice": ("gas_price", quantity_of),
    "maxFeePerGas": ("max_fee_per_gas", quantity_of),
    "maxPriorityFeePerGas": ("max_priority_fee_per_gas", quantity_of),
    "value": ("value", quantity_of),
    "nonce": ("nonce", quantity_of),
    "data": ("data", bytes_of),
    "input": ("data", bytes_of),
    "chainId": ("chain_id", quantity_of),
    "maxFeePerBlobGas": ("max_fee_per_blob_gas", quantity_of),
}
_ACCOUNT: Final[dict[str, tuple[str, Reader]]] = {
    "nonce": ("nonce", quantity_of),
    "code": ("code", bytes_of),
    "balance": ("balance", quantity_of),
    "movePrecompileToAddress": ("move_precompile_to", address_of),
}
_BLOCK: Final[dict[str, tuple[str, Reader]]] = {
    "number": ("number", quantity_of),
    "time": ("time", quantity_of),
    "gasLimit": ("gas_limit", quantity_of),
    "feeRecipient": ("fee_recipient", address_of),
    "prevRandao": ("prev_randao", bytes_of),
    "baseFeePerGas": ("base_fee_per_gas", quantity_of),
    "blobBaseFee": ("blob_base_fee", quantity_of),
    "difficulty": ("difficulty", quantity_of),
    "beaconRoot": ("beacon_root", bytes_of),
}

EXTENSIONS: Final = {
    "returnStateDiff": "state_diff",
    "returnAssetChanges": "asset_changes",
    "returnAccessList": "access_list",
    "returnCallTree": "call_tree",
}


def payload_from(value: Any) -> SimulatePayload:
    """A payload from its JSON form, from a list of calls (one block), or as it is."""
    if isinstance(value, SimulatePayload):
        return value
    if isinstance(value, list | tuple):
        return SimulatePayload(blocks=(BlockStateCalls(calls=_calls(value)),))
    given = _object(value, "payload")
    blocks = given.get("blockStateCalls") or ()
    return SimulatePayload(
        blocks=tuple([block_from(entry) for entry in _array(blocks, "blockStateCalls")]),
        trace_transfers=bool(given.get("traceTransfers")),
        validation=bool(given.get("validation")),
        full_transactions=bool(given.get("returnFullTransactions")),
        **extensions_from(given),
    )


def extensions_from(given: Mapping[str, Any]) -> dict[str, Any]:
    """The members that ask for more than the standard gives."""
    return {name: bool(given.get(member)) for member, name in EXTENSIONS.items()}


def block_from(value: Any) -> BlockStateCalls:
    """One entry of ``blockStateCalls``."""
    if isinstance(value, BlockStateCalls):
        return value
    given = _object(value or {}, "blockStateCalls")
    return BlockStateCalls(
        calls=_calls(given.get("calls") or ()),
        state_overrides=state_overrides_from(given.get("stateOverrides")),
        block_overrides=block_overrides_from(given.get("blockOverrides")),
    )


def call_from(value: Any) -> CallRequest:
    """A call object; ``input`` wins over ``data``."""
    if isinstance(value, CallRequest):
        return value
    given = _object(value or {}, "calls")
    fields = _members(given, _CALL)
    if given.get("accessList") is not None:
        entries = _array(given["accessList"], "accessList")
        fields["access_list"] = tuple([_access_entry(entry) for entry in entries])
    if given.get("blobVersionedHashes") is not None:
        hashes = _array(given["blobVersionedHashes"], "blobVersionedHashes")
        fields["blob_versioned_hashes"] = tuple(
            [bytes_of(item, "blobVersionedHashes") for item in hashes]
        )
    if given.get("authorizationList") is not None:
        entries = _array(given["authorizationList"], "authorizationList")
        fields["authorization_list"] = tuple([_authorization(entry) for entry in entries])
    return CallRequest(**fields)


def state_overrides_from(value: Any) -> dict[bytes, AccountOverride]:
    """An object of address to account override."""
    overrides = _object(value or {}, "stateOverrides")
    return {address_of(key, "stateOverrides"): account_from(o) for key, o in overrides.items()}


def account_from(value: Any) -> AccountOverride:
    """The override of one account."""
    if isinstance(value, AccountOverride):
        return value
    given = _object(value or {}, "stateOverrides")
    fields = _members(given, _ACCOUNT)
    for name, member in (("state", "state"), ("state_diff", "stateDiff")):
        if given.get(member) is not None:
            slots = _object(given[member], member)
            fields[name] = {word_of(k, member): word_of(v, member) for k, v in slots.items()}
    return AccountOverride(**fields)


def block_overrides_from(value: Any) -> BlockOverrides:
    """The overrides of a block."""
    if isinstance(value, BlockOverrides):
        return value
    given = _object(value or {}, "blockOverrides")
    fields = _members(given, _BLOCK)
    if given.get("withdrawals") is not None:
        entries = _array(given["withdrawals"], "withdrawals")
        fields["withdrawals"] = tuple([_withdrawal(entry) for entry in entries])
    return BlockOverrides(**fields)


def _calls(value: Any) -> tuple[CallRequest, ...]:
    return tuple([call_from(call) for call in _array(value, "calls")])


def _access_entry(value: Any) -> AccessListEntry:
    given = _object(value, "accessList")
    keys = _array(given.get("storageKeys") or (), "storageKeys")
    address = address_of(given.get("address"), "accessList.address")
    return AccessListEntry(address, tuple([word_of(key, "storageKeys") for key in keys]))


def _authorization(value: Any) -> Authorization:
    given = _object(value, "authorizationList")
    numbers = {
        name: quantity_of(given.get(member), f"authorizationList.{member}")
        for name, member in (
            ("chain_id", "chainId"), ("nonce", "nonce"), ("y_parity", "yParity"),
            ("r", "r"), ("s", "s"),
        )
    }  # fmt: skip
    address = address_of(given.get("address"), "authorizationList.address")
    return Authorization(address=address, **numbers)


def _withdrawal(value: Any) -> Withdrawal:
    given = _object(value, "withdrawals")
    return Withdrawal(
        quantity_of(given.get("index"), "withdrawals.index"),
        quantity_of(given.get("validatorIndex"), "withdrawals.validatorIndex"),
        address_of(given.get("address"), "withdrawals.address"),
        quantity_of(given.get("amount"), "withdrawals.amount"),
    )


def _members(given: Mapping[str, Any], table: dict[str, tuple[str, Reader]]) -> dict[str, Any]:
    return {
        name: read(given[member], member)
        for member, (name, read) in table.items()
        if given.get(member) is not None
    }


def _object(value: Any, name: str) -> Mapping[Any, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{name}: expected an object, found {type(value).__name__}")
    return value


def _array(value: Any, name: str) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise ValueError(f"{name}: expected an array, found {type(value).__name__}")
    return value
