"""Decodes call objects, state and block overrides, and the payload of eth_simulateV1.

Unknown members are ignored and null is the same as absent, as the standard has it. Errors name the
place as geth does, with the struct names that client libraries know.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from fastevm.simulate import (
    AccessListEntry,
    AccountOverride,
    Authorization,
    BlockOverrides,
    BlockStateCalls,
    CallRequest,
    SimulatePayload,
)
from fastevm.types import Withdrawal
from fastevm.wire.quantity import (
    decode_address,
    decode_bool,
    decode_bytes,
    decode_hash,
    decode_uint64,
    decode_uint256,
    object_fault,
)

T = TypeVar("T")
Decoder = Callable[..., Any]

_CALL: Final[dict[str, tuple[str, Decoder]]] = {
    "from": ("sender", decode_address),
    "to": ("to", decode_address),
    "gas": ("gas", decode_uint64),
    "gasPrice": ("gas_price", decode_uint256),
    "maxFeePerGas": ("max_fee_per_gas", decode_uint256),
    "maxPriorityFeePerGas": ("max_priority_fee_per_gas", decode_uint256),
    "value": ("value", decode_uint256),
    "nonce": ("nonce", decode_uint64),
    "chainId": ("chain_id", decode_uint256),
    "maxFeePerBlobGas": ("max_fee_per_blob_gas", decode_uint256),
}
_ACCOUNT: Final[dict[str, tuple[str, Decoder]]] = {
    "nonce": ("nonce", decode_uint64),
    "code": ("code", decode_bytes),
    "balance": ("balance", decode_uint256),
    "movePrecompileToAddress": ("move_precompile_to", decode_address),
}
_BLOCK: Final[dict[str, tuple[str, Decoder]]] = {
    "number": ("number", decode_uint256),
    "time": ("time", decode_uint64),
    "gasLimit": ("gas_limit", decode_uint64),
    "feeRecipient": ("fee_recipient", decode_address),
    "prevRandao": ("prev_randao", decode_hash),
    "baseFeePerGas": ("base_fee_per_gas", decode_uint256),
    "blobBaseFee": ("blob_base_fee", decode_uint256),
    "difficulty": ("difficulty", decode_uint256),
    "beaconRoot": ("beacon_root", decode_hash),
}


def decode_call(value: Any) -> CallRequest:
    """Decode a call object; ``input`` wins over ``data``."""
    fields = _members(value, "TransactionArgs", _CALL)
    fields["data"] = _call_data(value)
    hashes = value.get("blobVersionedHashes")
    if hashes is not None:
        where = "TransactionArgs.blobVersionedHashes"
        fields["blob_versioned_hashes"] = _tuple(hashes, where, decode_hash)
    if value.get("accessList") is not None:
        fields["access_list"] = _tuple(value["accessList"], "AccessList", _access_entry)
    if value.get("authorizationList") is not None:
        where = "TransactionArgs.authorizationList"
        fields["authorization_list"] = _tuple(value["authorizationList"], where, _authorization)
    return CallRequest(**fields)


def decode_state_overrides(value: Any) -> Mapping[bytes, AccountOverride]:
    """Decode an object of address -> account override; null is no override."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise object_fault(value, "override.StateOverride")
    return {decode_address(key): _account(entry) for key, entry in value.items()}


def decode_block_overrides(value: Any) -> BlockOverrides:
    """Decode a block override object; null is no override."""
    if value is None:
        return BlockOverrides()
    fields = _members(value, "BlockOverrides", _BLOCK)
    if value.get("withdrawals") is not None:
        where = "BlockOverrides.withdrawals"
        fields["withdrawals"] = _tuple(value["withdrawals"], where, decode_withdrawal)
    return BlockOverrides(**fields)


def decode_payload(value: Any) -> SimulatePayload:
    """Decode the payload of eth_simulateV1. An empty one is refused by the handler."""
    if not isinstance(value, dict):
        raise object_fault(value, "ethapi.simOpts")
    blocks = value.get("blockStateCalls")
    return SimulatePayload(
        blocks=() if blocks is None else _tuple(blocks, "simOpts.blockStateCalls", _simulated),
        trace_transfers=_flag(value, "traceTransfers"),
        validation=_flag(value, "validation"),
        full_transactions=_flag(value, "returnFullTransactions"),
    )


def _simulated(value: Any, *, field: str) -> BlockStateCalls:
    if value is None:
        return BlockStateCalls()
    if not isinstance(value, dict):
        raise object_fault(value, "ethapi.simBlock", field)
    calls = value.get("calls")
    return BlockStateCalls(
        calls=() if calls is None else _tuple(calls, "simBlock.calls", _simulated_call),
        state_overrides=decode_state_overrides(value.get("stateOverrides")),
        block_overrides=decode_block_overrides(value.get("blockOverrides")),
    )


def _simulated_call(value: Any, *, field: str) -> CallRequest:
    return CallRequest() if value is None else decode_call(value)


def _call_data(value: dict[str, Any]) -> bytes:
    given = value.get("input")
    if given is not None:
        return decode_bytes(given, field="TransactionArgs.input")
    given = value.get("data")
    return b"" if given is None else decode_bytes(given, field="TransactionArgs.data")


def _account(value: Any) -> AccountOverride:
    if value is None:
        return AccountOverride()
    fields = _members(value, "OverrideAccount", _ACCOUNT)
    for name, member in (("state", "state"), ("state_diff", "stateDiff")):
        slots = value.get(member)
        if slots is not None:
            fields[name] = _slots(slots, f"OverrideAccount.{member}")
    return AccountOverride(**fields)


def _slots(value: Any, field: str) -> dict[int, int]:
    if not isinstance(value, dict):
        raise object_fault(value, "map[common.Hash]common.Hash", field)
    return {_word(key, field): _word(entry, field) for key, entry in value.items()}


def _word(value: Any, field: str) -> int:
    return int.from_bytes(decode_hash(value, field=field), "big")


def _access_entry(value: Any, *, field: str) -> AccessListEntry:
    if not isinstance(value, dict):
        raise object_fault(value, "types.AccessTuple", field)
    keys = value.get("storageKeys")
    return AccessListEntry(
        decode_address(value.get("address"), field="AccessTuple.address"),
        () if keys is None else _tuple(keys, "AccessTuple.storageKeys", _slot),
    )


def _slot(value: Any, *, field: str) -> int:
    return _word(value, field)


def _authorization(value: Any, *, field: str) -> Authorization:
    if not isinstance(value, dict):
        raise object_fault(value, "types.SetCodeAuthorization", field)

    def member(name: str, decode: Callable[..., T]) -> T:
        return decode(value.get(name), field=f"SetCodeAuthorization.{name}")

    return Authorization(
        chain_id=member("chainId", decode_uint256),
        address=member("address", decode_address),
        nonce=member("nonce", decode_uint64),
        y_parity=member("yParity", decode_uint64),
        r=_signature_word(value, "r"),
        s=_signature_word(value, "s"),
    )


def _signature_word(value: dict[str, Any], name: str) -> int:
    """Decode r or s: a quantity, or (as signers print it) 32 bytes with leading zeros."""
    text, field = value.get(name), f"SetCodeAuthorization.{name}"
    if isinstance(text, str) and len(text) == 2 + 64:
        return _word(text, field)
    return decode_uint256(text, field=field)


def decode_withdrawal(value: Any, *, field: str) -> Withdrawal:
    """Decode a withdrawal object (EIP-4895)."""
    if not isinstance(value, dict):
        raise object_fault(value, "types.Withdrawal", field)
    return Withdrawal(
        decode_uint64(value.get("index"), field="Withdrawal.index"),
        decode_uint64(value.get("validatorIndex"), field="Withdrawal.validatorIndex"),
        decode_address(value.get("address"), field="Withdrawal.address"),
        decode_uint64(value.get("amount"), field="Withdrawal.amount"),
    )


def _flag(value: dict[str, Any], name: str) -> bool:
    flag = value.get(name)
    return False if flag is None else decode_bool(flag, field=f"simOpts.{name}")


def _tuple(value: Any, field: str, decode: Callable[..., T]) -> tuple[T, ...]:
    if not isinstance(value, list):
        raise object_fault(value, "array", field)
    return tuple([decode(item, field=field) for item in value])


def _members(value: Any, struct: str, table: dict[str, tuple[str, Decoder]]) -> dict[str, Any]:
    """Decode the members of ``value`` that the table names and that are not null."""
    if not isinstance(value, dict):
        raise object_fault(value, struct)
    fields: dict[str, Any] = {}
    for member, (name, decode) in table.items():
        given = value.get(member)
        if given is not None:
            fields[name] = decode(given, field=f"{struct}.{member}")
    return fields
