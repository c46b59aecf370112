"""Reads payloads of eth_simulateV1: from parsed JSON into values, from JSON text into a plan.

The reader of parsed JSON knows every member and reports every fault. Null is the same as absent.
The text reader makes one pass without the GIL. It takes the usual form: known members of the
standard, each once, hex as nodes write it, calls without lists.
"""

from libc.string cimport memset

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

from fastevm.core.simulation.plan cimport Plan, PlannedBlock, list_add
from fastevm.rpc_types.call_object cimport take_call
from fastevm.rpc_types.overrides cimport take_block_overrides, take_state_overrides
from fastevm.rpc_types.text.json_reader cimport (
    STEP_END,
    STEP_MORE,
    Cursor,
    Key,
    Step,
    is_key,
    next_item,
    next_member,
    once,
    take,
    take_flag,
)

from collections.abc import Mapping
from typing import Any

from fastevm.core.simulation.limits import MAX_BLOCKS, MAX_CALLS, MAX_CALLS_PER_BLOCK
from fastevm.core.simulation.values import BlockStateCalls, CallRequest, SimulatePayload
from fastevm.rpc_types.call_object import call_from
from fastevm.rpc_types.overrides import block_overrides_from, state_overrides_from
from fastevm.rpc_types.positions import items_from
from fastevm.rpc_types.value_forms import GETH, NATIVE, FieldPath, Form, object_of

# Members that request results beyond the standard.
EXTENSIONS = {
    "returnStateDiff": "state_diff",
    "returnAssetChanges": "asset_changes",
    "returnAccessList": "access_list",
    "returnCallTree": "call_tree",
}

ENTRY_MEMBERS = frozenset(("calls", "stateOverrides", "blockOverrides"))
PAYLOAD_MEMBERS = frozenset(
    ("blockStateCalls", "traceTransfers", "validation", "returnFullTransactions", *EXTENSIONS)
)

_PAYLOAD = FieldPath("", "payload")
_BLOCKS = FieldPath("simOpts.blockStateCalls", "blockStateCalls")
_CALLS = FieldPath("simBlock.calls", "calls")


cdef size_t MOST_BLOCKS = MAX_BLOCKS
cdef size_t MOST_CALLS = MAX_CALLS
cdef size_t MOST_CALLS_OF_BLOCK = MAX_CALLS_PER_BLOCK


# ----------------------------------------------------------------------------------------------
# from parsed JSON to values

def payload_from(value: Any, form: Form = NATIVE) -> SimulatePayload:
    """Reads the payload of eth_simulateV1, or a list of calls as its only block."""
    if isinstance(value, SimulatePayload):
        return value
    if form is NATIVE and isinstance(value, list | tuple):
        return SimulatePayload(blocks=(BlockStateCalls(calls=_calls(value, form)),))
    given = object_of(value, _PAYLOAD, "ethapi.simOpts", PAYLOAD_MEMBERS, form)
    blocks = given.get("blockStateCalls")
    entries = () if blocks is None else form.array(blocks, _BLOCKS)
    return SimulatePayload(
        blocks=items_from(entries, block_from, "blockStateCalls", form),
        trace_transfers=_flag(given, "traceTransfers", form),
        validation=_flag(given, "validation", form),
        full_transactions=_flag(given, "returnFullTransactions", form),
        **extensions_from(given),
    )


def extensions_from(given: Mapping[str, Any]) -> dict[str, Any]:
    """Reads the members that request results beyond the standard."""
    return {name: bool(given.get(member)) for member, name in EXTENSIONS.items()}


def block_from(value: Any, form: Form = NATIVE) -> BlockStateCalls:
    """Reads an entry of ``blockStateCalls``."""
    if isinstance(value, BlockStateCalls):
        return value
    if value is None:
        return BlockStateCalls()
    given = object_of(value, _BLOCKS, "ethapi.simBlock", ENTRY_MEMBERS, form)
    return BlockStateCalls(
        calls=_calls(given.get("calls"), form),
        state_overrides=state_overrides_from(given.get("stateOverrides"), form),
        block_overrides=block_overrides_from(given.get("blockOverrides"), form),
    )


def decode_payload(value: Any, form: Form = GETH) -> SimulatePayload:
    """Reads the payload of eth_simulateV1 in JSON-RPC, which may be empty."""
    return payload_from(value, form)


def _calls(value: Any, form: Form) -> tuple[CallRequest, ...]:
    calls = () if value is None else form.array(value, _CALLS)
    return items_from(calls, _call, "calls", form)


def _call(value: Any, form: Form) -> CallRequest:
    return CallRequest() if value is None else call_from(value, form)


def _flag(given: Mapping[str, Any], name: str, form: Form) -> bool:
    value = given.get(name)
    return False if value is None else form.flag(value, FieldPath(f"simOpts.{name}", name))


# ----------------------------------------------------------------------------------------------
# from JSON text to a plan

cdef bint read_calls(Plan plan, Cursor* c, PlannedBlock* block) noexcept nogil:
    cdef size_t count = 0
    cdef Step step = STEP_MORE
    if not take(c, c'['):
        return False
    while True:
        step = next_item(c, &count)
        if step != STEP_MORE:
            break
        if count > MOST_CALLS_OF_BLOCK or plan.calls.count > MOST_CALLS or not take_call(plan, c):
            return False
    block.call_count = count
    return step == STEP_END


cdef bint read_block(Plan plan, Cursor* c) noexcept nogil:
    cdef PlannedBlock* block = <PlannedBlock*>list_add(&plan.blocks, sizeof(PlannedBlock))
    cdef Key key
    cdef size_t count = 0
    cdef bint fits
    cdef Step step = STEP_MORE
    memset(&key, 0, sizeof(key))
    if block == NULL or not take(c, c'{'):
        return False
    block.first_call = plan.calls.count
    key.seen = 0
    while True:
        step = next_member(c, &count, &key)
        if step != STEP_MORE:
            return step == STEP_END
        if is_key(&key, b"calls"):
            fits = once(&key, 0) and read_calls(plan, c, block)
        elif is_key(&key, b"stateOverrides"):
            fits = once(&key, 1) and take_state_overrides(plan, c, block)
        else:
            fits = (is_key(&key, b"blockOverrides") and once(&key, 2)
                    and take_block_overrides(c, block))
        if not fits:
            return False


cdef bint read_blocks(Plan plan, Cursor* c) noexcept nogil:
    cdef size_t count = 0
    cdef Step step = STEP_MORE
    if not take(c, c'['):
        return False
    while True:
        step = next_item(c, &count)
        if step != STEP_MORE:
            return step == STEP_END and count != 0
        if count > MOST_BLOCKS or not read_block(plan, c):
            return False


cdef bint read_payload(Plan plan, Cursor* c) noexcept nogil:
    cdef Key key
    cdef size_t count = 0
    cdef bint fits
    cdef Step step = STEP_MORE
    memset(&key, 0, sizeof(key))
    if not take(c, c'{'):
        return False
    key.seen = 0
    while True:
        step = next_member(c, &count, &key)
        if step != STEP_MORE:
            return step == STEP_END and plan.blocks.count != 0
        if is_key(&key, b"blockStateCalls"):
            fits = once(&key, 0) and read_blocks(plan, c)
        elif is_key(&key, b"validation"):
            fits = once(&key, 1) and take_flag(c, &plan.validation)
        elif is_key(&key, b"traceTransfers"):
            fits = once(&key, 2) and take_flag(c, &plan.trace_transfers)
        else:
            fits = (is_key(&key, b"returnFullTransactions") and once(&key, 3)
                    and take_flag(c, &plan.full_transactions))
        if not fits:
            return False


def read_request(params: bytes) -> tuple[Plan, bytes] | None:
    """Reads a plan from the text of the params (an array).

    Returns the plan and the text of the remaining params as an array. None if the params do not
    have the usual form.
    """
    cdef Plan plan = Plan.__new__(Plan)
    cdef bytes text = params
    cdef Cursor c
    cdef bint fits
    memset(&c, 0, sizeof(c))
    c.at = PyBytes_AS_STRING(text)
    c.end = c.at + PyBytes_GET_SIZE(text)
    with nogil:
        fits = take(&c, c'[') and read_payload(plan, &c)
    if not fits:
        return None
    rest = c.at[:c.end - c.at].strip()
    others = rest.removeprefix(b",").lstrip()
    if others == b"]" and others != rest:
        return None
    return plan, b"[" + others
