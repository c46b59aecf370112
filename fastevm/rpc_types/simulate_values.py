"""Call objects, overrides and payloads of eth_simulateV1 in parsed JSON, as typed values.

There is one reader of each; a form (`value_forms.py`) says how strict it is and how it names a
fault. Null is the same as absent. Unknown members are ignored in the form of JSON-RPC, as clients
expect, and refused in that of Python programs. All raise ValueError
(`fastevm.rpc_types.quantity.DecodeError` in the form of JSON-RPC) for what cannot be read.
"""

from collections.abc import Mapping
from typing import Any, Final

from fastevm.core.execution.transaction.transaction_fields import AccessListEntry, Authorization
from fastevm.core.execution.types import Withdrawal
from fastevm.core.primitives.suggestion import nearest
from fastevm.core.simulation.values import (
    AccountOverride,
    BlockOverrides,
    BlockStateCalls,
    CallRequest,
    SimulatePayload,
)
from fastevm.rpc_types.quantity import DecodeError
from fastevm.rpc_types.value_forms import GETH, NATIVE, FieldPath, Form

UINT64: Final = 2**64

Table = dict[str, tuple[str, str, FieldPath]]  # member -> field of the value, kind, place


def _table(struct: str, members: dict[str, tuple[str, str]], prefix: str = "") -> Table:
    return {
        member: (field, kind, FieldPath(f"{struct}.{member}", prefix + member))
        for member, (field, kind) in members.items()
    }


_CALL: Final = _table(
    "TransactionArgs",
    {
        "from": ("sender", "address"),
        "to": ("to", "address"),
        "gas": ("gas", "uint64"),
        "gasPrice": ("gas_price", "uint256"),
        "maxFeePerGas": ("max_fee_per_gas", "uint256"),
        "maxPriorityFeePerGas": ("max_priority_fee_per_gas", "uint256"),
        "value": ("value", "uint256"),
        "nonce": ("nonce", "uint64"),
        "chainId": ("chain_id", "uint256"),
        "maxFeePerBlobGas": ("max_fee_per_blob_gas", "uint256"),
    },
)
_ACCOUNT: Final = _table(
    "OverrideAccount",
    {
        "nonce": ("nonce", "uint64"),
        "code": ("code", "data"),
        "balance": ("balance", "uint256"),
        "movePrecompileToAddress": ("move_precompile_to", "address"),
    },
)
_BLOCK: Final = _table(
    "BlockOverrides",
    {
        "number": ("number", "uint256"),
        "time": ("time", "uint64"),
        "gasLimit": ("gas_limit", "uint64"),
        "feeRecipient": ("fee_recipient", "address"),
        "prevRandao": ("prev_randao", "hash"),
        "baseFeePerGas": ("base_fee_per_gas", "uint256"),
        "blobBaseFee": ("blob_base_fee", "uint256"),
        "difficulty": ("difficulty", "uint256"),
        "beaconRoot": ("beacon_root", "hash"),
    },
)
_AUTHORIZATION: Final = _table(
    "SetCodeAuthorization",
    {
        "chainId": ("chain_id", "uint256"),
        "address": ("address", "address"),
        "nonce": ("nonce", "uint64"),
        "yParity": ("y_parity", "uint64"),
        "r": ("r", "signature_word"),
        "s": ("s", "signature_word"),
    },
    "authorizationList.",
)
_WITHDRAWAL: Final = _table(
    "Withdrawal",
    {
        "index": ("index", "uint64"),
        "validatorIndex": ("validator_index", "uint64"),
        "address": ("address", "address"),
        "amount": ("amount", "uint64"),
    },
    "withdrawals.",
)
# Members that ask for more than the standard gives.
EXTENSIONS: Final = {
    "returnStateDiff": "state_diff",
    "returnAssetChanges": "asset_changes",
    "returnAccessList": "access_list",
    "returnCallTree": "call_tree",
}

# All members of each kind of object.
CALL_MEMBERS: Final = frozenset(
    (*_CALL, "data", "input", "type", "blobVersionedHashes", "accessList", "authorizationList")
)
ACCOUNT_MEMBERS: Final = frozenset((*_ACCOUNT, "state", "stateDiff"))
BLOCK_MEMBERS: Final = frozenset((*_BLOCK, "withdrawals"))
ENTRY_MEMBERS: Final = frozenset(("calls", "stateOverrides", "blockOverrides"))
PAYLOAD_MEMBERS: Final = frozenset(
    ("blockStateCalls", "traceTransfers", "validation", "returnFullTransactions", *EXTENSIONS)
)

_CALL_OBJECT = FieldPath("", "calls")
_DATA = FieldPath("TransactionArgs.data", "data")
_INPUT = FieldPath("TransactionArgs.input", "input")
_BLOB_HASHES = FieldPath("TransactionArgs.blobVersionedHashes", "blobVersionedHashes")
_ACCESS_LIST = FieldPath("AccessList", "accessList")
_ACCESS_ADDRESS = FieldPath("AccessTuple.address", "accessList.address")
_STORAGE_KEYS = FieldPath("AccessTuple.storageKeys", "storageKeys")
_AUTHORIZATIONS = FieldPath("TransactionArgs.authorizationList", "authorizationList")
_STATE_OVERRIDES = FieldPath("", "stateOverrides")
_BLOCK_OVERRIDES = FieldPath("", "blockOverrides")
_WITHDRAWALS = FieldPath("BlockOverrides.withdrawals", "withdrawals")
_PAYLOAD = FieldPath("", "payload")
_BLOCKS = FieldPath("simOpts.blockStateCalls", "blockStateCalls")
_CALLS = FieldPath("simBlock.calls", "calls")


def call_from(value: Any, form: Form = NATIVE) -> CallRequest:
    """A call object; ``input`` wins over ``data``."""
    if isinstance(value, CallRequest):
        return value
    given = _object(value, _CALL_OBJECT, "TransactionArgs", CALL_MEMBERS, form)
    fields = _members(given, _CALL, form)
    if given.get("input") is not None:
        fields["data"] = form.data(given["input"], _INPUT)
    elif given.get("data") is not None:
        fields["data"] = form.data(given["data"], _DATA)
    if given.get("blobVersionedHashes") is not None:
        hashes = form.array(given["blobVersionedHashes"], _BLOB_HASHES)
        fields["blob_versioned_hashes"] = tuple([form.hash(h, _BLOB_HASHES) for h in hashes])
    if given.get("accessList") is not None:
        entries = form.array(given["accessList"], _ACCESS_LIST)
        fields["access_list"] = tuple([_access_entry(entry, form) for entry in entries])
    if given.get("authorizationList") is not None:
        entries = form.array(given["authorizationList"], _AUTHORIZATIONS)
        fields["authorization_list"] = tuple([_authorization(entry, form) for entry in entries])
    return CallRequest(**fields)


def state_overrides_from(value: Any, form: Form = NATIVE) -> dict[bytes, AccountOverride]:
    """An object of address to override of the account."""
    if value is None:
        return {}
    overrides = form.object(value, _STATE_OVERRIDES, "override.StateOverride")
    return {
        form.address(key, _STATE_OVERRIDES): account_from(entry, form)
        for key, entry in overrides.items()
    }


def account_from(value: Any, form: Form = NATIVE) -> AccountOverride:
    """The override of one account."""
    if isinstance(value, AccountOverride):
        return value
    if value is None:
        return AccountOverride()
    given = _object(value, _STATE_OVERRIDES, "OverrideAccount", ACCOUNT_MEMBERS, form)
    fields = _members(given, _ACCOUNT, form)
    for name, member in (("state", "state"), ("state_diff", "stateDiff")):
        if given.get(member) is not None:
            place = FieldPath(f"OverrideAccount.{member}", member)
            slots = form.object(given[member], place, "map[common.Hash]common.Hash")
            fields[name] = {form.word(k, place): form.word(v, place) for k, v in slots.items()}
    return AccountOverride(**fields)


def block_overrides_from(value: Any, form: Form = NATIVE) -> BlockOverrides:
    """The overrides of a block."""
    if isinstance(value, BlockOverrides):
        return value
    if value is None:
        return BlockOverrides()
    given = _object(value, _BLOCK_OVERRIDES, "BlockOverrides", BLOCK_MEMBERS, form)
    fields = _members(given, _BLOCK, form)
    if given.get("withdrawals") is not None:
        entries = form.array(given["withdrawals"], _WITHDRAWALS)
        fields["withdrawals"] = tuple([withdrawal_from(e, _WITHDRAWALS, form) for e in entries])
    return BlockOverrides(**fields)


def payload_from(value: Any, form: Form = NATIVE) -> SimulatePayload:
    """The payload of eth_simulateV1, or a list of calls as its one block."""
    if isinstance(value, SimulatePayload):
        return value
    if form is NATIVE and isinstance(value, list | tuple):
        return SimulatePayload(blocks=(BlockStateCalls(calls=_calls(value, form)),))
    given = _object(value, _PAYLOAD, "ethapi.simOpts", PAYLOAD_MEMBERS, form)
    blocks = given.get("blockStateCalls")
    entries = () if blocks is None else form.array(blocks, _BLOCKS)
    return SimulatePayload(
        blocks=tuple([block_from(entry, form) for entry in entries]),
        trace_transfers=_flag(given, "traceTransfers", form),
        validation=_flag(given, "validation", form),
        full_transactions=_flag(given, "returnFullTransactions", form),
        **extensions_from(given),
    )


def extensions_from(given: Mapping[str, Any]) -> dict[str, Any]:
    """The members that ask for more than the standard gives."""
    return {name: bool(given.get(member)) for member, name in EXTENSIONS.items()}


def block_from(value: Any, form: Form = NATIVE) -> BlockStateCalls:
    """One entry of ``blockStateCalls``."""
    if isinstance(value, BlockStateCalls):
        return value
    if value is None:
        return BlockStateCalls()
    given = _object(value, _BLOCKS, "ethapi.simBlock", ENTRY_MEMBERS, form)
    return BlockStateCalls(
        calls=_calls(given.get("calls"), form),
        state_overrides=state_overrides_from(given.get("stateOverrides"), form),
        block_overrides=block_overrides_from(given.get("blockOverrides"), form),
    )


def withdrawal_from(value: Any, place: FieldPath, form: Form) -> Withdrawal:
    """A withdrawal object (EIP-4895)."""
    given = form.object(value, place, "types.Withdrawal")
    return Withdrawal(**_all_members(given, _WITHDRAWAL, form))


def decode_call(value: Any) -> CallRequest:
    """A call object of JSON-RPC."""
    return call_from(value, GETH)


def decode_state_overrides(value: Any) -> Mapping[bytes, AccountOverride]:
    """State overrides of JSON-RPC; null is none."""
    return state_overrides_from(value, GETH)


def decode_block_overrides(value: Any) -> BlockOverrides:
    """Block overrides of a call in JSON-RPC; null is none.

    A number of more than 64 bits, which a simulated block may ask for in vain, is refused here.
    """
    overrides = block_overrides_from(value, GETH)
    if overrides.number is not None and overrides.number >= UINT64:
        raise DecodeError("BlockOverrides.number: hex number > 64 bits")
    return overrides


def decode_payload(value: Any) -> SimulatePayload:
    """The payload of eth_simulateV1 in JSON-RPC, maybe an empty one."""
    return payload_from(value, GETH)


def decode_withdrawal(value: Any, *, field: str) -> Withdrawal:
    """A withdrawal object of JSON-RPC."""
    return withdrawal_from(value, FieldPath(field, field), GETH)


def refuse_unknown(given: Mapping[str, Any], known: frozenset[str], name: str) -> None:
    """ValueError for a member that is none of those known, with the nearest one."""
    for member in given:
        if member not in known:
            near = nearest(str(member), sorted(known))
            hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(sorted(known))}"
            raise ValueError(f"{name}: there is no member {member!r}: {hint}")


def _object(
    value: Any, place: FieldPath, struct: str, known: frozenset[str], form: Form
) -> Mapping[str, Any]:
    given = form.object(value, place, struct)
    if form is NATIVE:
        refuse_unknown(given, known, place.name)
    return given


def _calls(value: Any, form: Form) -> tuple[CallRequest, ...]:
    calls = () if value is None else form.array(value, _CALLS)
    return tuple([CallRequest() if call is None else call_from(call, form) for call in calls])


def _access_entry(value: Any, form: Form) -> AccessListEntry:
    given = form.object(value, _ACCESS_LIST, "types.AccessTuple")
    address = form.address(given.get("address"), _ACCESS_ADDRESS)
    keys = given.get("storageKeys")
    slots = () if keys is None else form.array(keys, _STORAGE_KEYS)
    return AccessListEntry(address, tuple([form.word(key, _STORAGE_KEYS) for key in slots]))


def _authorization(value: Any, form: Form) -> Authorization:
    given = form.object(value, _AUTHORIZATIONS, "types.SetCodeAuthorization")
    return Authorization(**_all_members(given, _AUTHORIZATION, form))


def _flag(given: Mapping[str, Any], name: str, form: Form) -> bool:
    value = given.get(name)
    return False if value is None else form.flag(value, FieldPath(f"simOpts.{name}", name))


def _members(given: Mapping[str, Any], table: Table, form: Form) -> dict[str, Any]:
    """The members that the table names and that are not null."""
    fields: dict[str, Any] = {}
    for member, (field, kind, place) in table.items():
        value = given.get(member)
        if value is not None:
            fields[field] = getattr(form, kind)(value, place)
    return fields


def _all_members(given: Mapping[str, Any], table: Table, form: Form) -> dict[str, Any]:
    """Every member that the table names; one that is absent is a fault of its kind."""
    return {
        field: getattr(form, kind)(given.get(member), place)
        for member, (field, kind, place) in table.items()
    }
