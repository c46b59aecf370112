"""Reads overrides of blocks and accounts: from parsed JSON into values, from JSON text into a plan.

The reader of parsed JSON knows every member and reports every fault. Null is the same as absent.
The text reader (without the GIL) takes the usual form: known members, each once, hex as nodes write
it, no withdrawals.
"""

from libc.stdint cimport uint8_t
from libc.string cimport memset

from fastevm.core.primitives.hashes cimport address_eq
from fastevm.core.primitives.word cimport word_load
from fastevm.core.simulation.plan cimport (
    Plan,
    PlannedBlock,
    PlannedOverride,
    SlotValue,
    list_add,
    plan_sort_overrides,
)
from fastevm.core.state.code cimport code_new
from fastevm.rpc_types.text.json_reader cimport (
    STEP_END,
    STEP_MORE,
    Cursor,
    Key,
    Step,
    hex_fixed,
    is_key,
    next_member,
    once,
    take,
    take_data,
    take_fixed,
    take_hash_word,
    take_uint64,
    take_word,
)

from collections.abc import Mapping
from typing import Any

from fastevm.core.execution.types import Withdrawal
from fastevm.core.simulation.values import AccountOverride, BlockOverrides
from fastevm.rpc_types.positions import items_from, members_from, read_at
from fastevm.rpc_types.quantity import DecodeError
from fastevm.rpc_types.value_forms import (
    GETH,
    NATIVE,
    FieldPath,
    Form,
    all_members_of,
    members_of,
    refuse_unknown,
    table_of,
)

UINT64 = 2**64
_ACCOUNT = table_of(
    "OverrideAccount",
    {
        "nonce": ("nonce", "uint64"),
        "code": ("code", "data"),
        "balance": ("balance", "uint256"),
        "movePrecompileToAddress": ("move_precompile_to", "address"),
    },
)
_BLOCK = table_of(
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
_WITHDRAWAL = table_of(
    "Withdrawal",
    {
        "index": ("index", "uint64"),
        "validatorIndex": ("validator_index", "uint64"),
        "address": ("address", "address"),
        "amount": ("amount", "uint64"),
    },
    "withdrawals.",
)
# Aliases of members: names used by the interface document and by anvil.
ACCOUNT_ALIASES = {"storage": "stateDiff"}
BLOCK_ALIASES = {
    "timestamp": "time",
    "coinbase": "feeRecipient",
    "random": "prevRandao",
    "baseFee": "baseFeePerGas",
}
ACCOUNT_MEMBERS = frozenset((*_ACCOUNT, "state", "stateDiff", *ACCOUNT_ALIASES))
BLOCK_MEMBERS = frozenset((*_BLOCK, "withdrawals", *BLOCK_ALIASES))

_STATE_OVERRIDES = FieldPath("", "stateOverrides")
_BLOCK_OVERRIDES = FieldPath("", "blockOverrides")
_WITHDRAWALS = FieldPath("BlockOverrides.withdrawals", "withdrawals")


cdef enum:
    MOST_OVERRIDES = 64          # per block; each override is compared with all earlier overrides


# ----------------------------------------------------------------------------------------------
# from parsed JSON to values

def state_overrides_from(value: Any, form: Form = NATIVE) -> dict[bytes, AccountOverride]:
    """Reads an object that maps addresses to account overrides."""
    if value is None:
        return {}
    overrides = form.object(value, _STATE_OVERRIDES, "override.StateOverride")
    return members_from(overrides, _address, account_from, "stateOverrides", form)


def _address(value: Any, form: Form) -> bytes:
    return form.address(value, _STATE_OVERRIDES)


def account_from(value: Any, form: Form = NATIVE) -> AccountOverride:
    """Reads the override of one account."""
    if isinstance(value, AccountOverride):
        return value
    if value is None:
        return AccountOverride()
    given = form.object(value, _STATE_OVERRIDES, "OverrideAccount")
    given = with_own_names(given, ACCOUNT_MEMBERS, ACCOUNT_ALIASES, "stateOverrides", form)
    fields = members_of(given, _ACCOUNT, form)
    for name, member in (("state", "state"), ("state_diff", "stateDiff")):
        if given.get(member) is not None:
            path = FieldPath(f"OverrideAccount.{member}", member)
            slots = form.object(given[member], path, "map[common.Hash]common.Hash")
            fields[name] = {form.word(k, path): form.word(v, path) for k, v in slots.items()}
    return AccountOverride(**fields)


def block_overrides_from(value: Any, form: Form = NATIVE) -> BlockOverrides:
    """Reads the overrides of a block."""
    if isinstance(value, BlockOverrides):
        return value
    if value is None:
        return BlockOverrides()
    return read_at(value, _block_overrides, "blockOverrides", form)


def _block_overrides(value: Any, form: Form) -> BlockOverrides:
    given = form.object(value, _BLOCK_OVERRIDES, "BlockOverrides")
    given = with_own_names(given, BLOCK_MEMBERS, BLOCK_ALIASES, "blockOverrides", form)
    fields = members_of(given, _BLOCK, form)
    if given.get("withdrawals") is not None:
        entries = form.array(given["withdrawals"], _WITHDRAWALS)
        fields["withdrawals"] = items_from(entries, _withdrawal, "withdrawals", form)
    return BlockOverrides(**fields)


def with_own_names(
    given: Mapping[str, Any],
    known: frozenset[str],
    aliases: Mapping[str, str],
    name: str,
    form: Form,
) -> Mapping[str, Any]:
    """Replaces each alias by the name for which it stands.

    Raises DecodeError if the form refuses unknown members and ``given`` has one, or if ``given``
    has both an alias and the name that the alias stands for.
    """
    if form.refuses_unknown_overrides:
        refuse_unknown(given, known, name)
    for alias, own in aliases.items():
        if given.get(alias) is not None:
            if given.get(own) is not None:
                raise DecodeError(f"{name}: {alias!r} means {own!r}: give only one of them")
            given = {**given, own: given[alias]}
    return given


def _withdrawal(value: Any, form: Form) -> Withdrawal:
    return withdrawal_from(value, _WITHDRAWALS, form)


def withdrawal_from(value: Any, path: FieldPath, form: Form) -> Withdrawal:
    """Reads a withdrawal object (EIP-4895)."""
    given = form.object(value, path, "types.Withdrawal")
    return Withdrawal(**all_members_of(given, _WITHDRAWAL, form))


def decode_state_overrides(value: Any, form: Form = GETH) -> Mapping[bytes, AccountOverride]:
    """Reads state overrides of JSON-RPC. Null means no overrides."""
    return state_overrides_from(value, form)


def decode_block_overrides(value: Any, form: Form = GETH) -> BlockOverrides:
    """Reads block overrides of a call in JSON-RPC. Null means no overrides.

    Raises DecodeError for numbers above 64 bits. eth_simulateV1 does not use this function: there
    such numbers are read, and the simulation is refused later.
    """
    overrides = block_overrides_from(value, form)
    if overrides.number is not None and overrides.number >= UINT64:
        raise DecodeError("BlockOverrides.number: hex number > 64 bits")
    return overrides


def decode_withdrawal(value: Any, *, field: str) -> Withdrawal:
    """Reads a withdrawal object of JSON-RPC."""
    return withdrawal_from(value, FieldPath(field, field), GETH)


# ----------------------------------------------------------------------------------------------
# from the JSON text of account overrides to a plan

cdef bint read_slots(Plan plan, Cursor* c, PlannedOverride* item) noexcept nogil:
    cdef SlotValue* slot
    cdef Key key
    cdef size_t count = 0
    cdef uint8_t word[32]
    cdef Step step = STEP_MORE
    memset(&key, 0, sizeof(key))
    if not take(c, c'{'):
        return False
    while True:
        step = next_member(c, &count, &key)
        if step != STEP_MORE:
            break
        slot = <SlotValue*>list_add(&plan.slots, sizeof(SlotValue))
        if slot == NULL or not hex_fixed(key.text, key.size, word, 32):
            return False
        word_load(&slot.key, word)
        if not take_hash_word(c, &slot.value):
            return False
    item.slot_count = count
    return step == STEP_END


cdef bint read_code(Plan plan, Cursor* c, PlannedOverride* item) noexcept nogil:
    cdef const uint8_t* code = NULL
    cdef size_t size = 0
    if not take_data(c, plan.arena, &code, &size):
        return False
    item.code = code_new(code, size, NULL, False)
    item.has_code = True
    return item.code != NULL


cdef bint read_account_member(Plan plan, Cursor* c, Key* key, PlannedOverride* item) noexcept nogil:
    """Reads a member of an account override, which has at most one of ``state``, ``stateDiff``."""
    if is_key(key, b"balance"):
        item.has_balance = True
        return once(key, 0) and take_word(c, &item.balance)
    if is_key(key, b"nonce"):
        item.has_nonce = True
        return once(key, 1) and take_uint64(c, &item.nonce)
    if is_key(key, b"code"):
        return once(key, 2) and read_code(plan, c, item)
    if is_key(key, b"movePrecompileToAddress"):
        item.moves_precompile = True
        return once(key, 4) and take_fixed(c, item.move_to.b, 20)
    item.has_state = is_key(key, b"state")
    item.has_state_diff = is_key(key, b"stateDiff") or is_key(key, b"storage")
    if item.has_state or item.has_state_diff:
        return once(key, 3) and read_slots(plan, c, item)
    return False


cdef bint read_account(Plan plan, Cursor* c, PlannedOverride* item) noexcept nogil:
    cdef Key key
    cdef size_t count = 0
    cdef Step step = STEP_MORE
    memset(&key, 0, sizeof(key))
    if not take(c, c'{'):
        return False
    item.first_slot = plan.slots.count
    key.seen = 0
    while True:
        step = next_member(c, &count, &key)
        if step != STEP_MORE:
            break
        if not read_account_member(plan, c, &key, item):
            return False
    return step == STEP_END


cdef bint is_new(Plan plan, size_t first) noexcept nogil:
    """Returns whether no other override of the block has the account of the last override."""
    cdef const PlannedOverride* items = <const PlannedOverride*>plan.overrides.items
    cdef size_t last = plan.overrides.count - 1
    cdef size_t i
    if last - first >= MOST_OVERRIDES:
        return False
    for i in range(first, last):
        if address_eq(&items[i].address, &items[last].address):
            return False
    return True


cdef bint take_state_overrides(Plan plan, Cursor* c, PlannedBlock* block) noexcept nogil:
    cdef PlannedOverride* item
    cdef Key key
    cdef size_t count = 0
    cdef Step step = STEP_MORE
    memset(&key, 0, sizeof(key))
    if not take(c, c'{'):
        return False
    block.first_override = plan.overrides.count
    while True:
        step = next_member(c, &count, &key)
        if step != STEP_MORE:
            break
        item = <PlannedOverride*>list_add(&plan.overrides, sizeof(PlannedOverride))
        if item == NULL or not hex_fixed(key.text, key.size, item.address.b, 20):
            return False
        if not is_new(plan, block.first_override) or not read_account(plan, c, item):
            return False
    block.override_count = count
    plan_sort_overrides(plan, block)
    return step == STEP_END


# ----------------------------------------------------------------------------------------------
# from the JSON text of block overrides to a plan

cdef bint read_block_number(Cursor* c, Key* key, PlannedBlock* block) noexcept nogil:
    if is_key(key, b"number"):
        block.has_number = True
        return once(key, 0) and take_uint64(c, &block.number)
    if is_key(key, b"time") or is_key(key, b"timestamp"):
        block.has_time = True
        return once(key, 1) and take_uint64(c, &block.time)
    if is_key(key, b"gasLimit"):
        block.has_gas_limit = True
        return once(key, 2) and take_uint64(c, &block.gas_limit)
    if is_key(key, b"baseFeePerGas") or is_key(key, b"baseFee"):
        block.has_base_fee = True
        return once(key, 3) and take_word(c, &block.base_fee)
    if is_key(key, b"blobBaseFee"):
        block.has_blob_base_fee = True
        return once(key, 4) and take_word(c, &block.blob_base_fee)
    if is_key(key, b"difficulty"):
        block.has_difficulty = True
        return once(key, 5) and take_word(c, &block.difficulty)
    return False


cdef bint read_block_name(Cursor* c, Key* key, PlannedBlock* block) noexcept nogil:
    if is_key(key, b"feeRecipient") or is_key(key, b"coinbase"):
        block.has_fee_recipient = True
        return once(key, 6) and take_fixed(c, block.fee_recipient.b, 20)
    if is_key(key, b"prevRandao") or is_key(key, b"random"):
        return once(key, 7) and take_fixed(c, block.prev_randao.b, 32)
    if is_key(key, b"beaconRoot"):
        return once(key, 8) and take_fixed(c, block.beacon_root.b, 32)
    return False


cdef bint take_block_overrides(Cursor* c, PlannedBlock* block) noexcept nogil:
    cdef Key key
    cdef size_t count = 0
    cdef Step step = STEP_MORE
    memset(&key, 0, sizeof(key))
    if not take(c, c'{'):
        return False
    key.seen = 0
    while True:
        step = next_member(c, &count, &key)
        if step != STEP_MORE:
            return step == STEP_END
        if not (read_block_number(c, &key, block) or read_block_name(c, &key, block)):
            return False
