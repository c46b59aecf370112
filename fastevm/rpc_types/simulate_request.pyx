"""Reads the params of eth_simulateV1 into a plan, in one pass over the text without the GIL.

The text reader takes the usual form: known members of the standard, each once, hex as nodes write
it, calls without lists. None stands for any other form: the reader of parsed JSON knows all of it,
and the words for each fault.
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

from fastevm.core.simulation.limits import MAX_BLOCKS, MAX_CALLS, MAX_CALLS_PER_BLOCK


cdef size_t MOST_BLOCKS = MAX_BLOCKS
cdef size_t MOST_CALLS = MAX_CALLS
cdef size_t MOST_CALLS_OF_BLOCK = MAX_CALLS_PER_BLOCK


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
    """The plan of the payload in the text of the params (an array), and the text of the params
    after it (an array too); None for any other form."""
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
