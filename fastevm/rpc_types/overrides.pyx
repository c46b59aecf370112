"""Reads overrides of blocks and accounts: from JSON text into a plan, without the GIL.

The text reader takes the usual form: known members, each once, hex as nodes write it, no
withdrawals. Everything else, and every fault, is left to the reader of parsed JSON.
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


cdef enum:
    MOST_OVERRIDES = 64          # of one block; each is held against those before it


# ----------------------------------------------------------------------------------------------
# accounts

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
    """Storage is given once: replaced or changed, not both."""
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
    item.has_state_diff = is_key(key, b"stateDiff")
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
    """Whether the override read last is of an account of its own."""
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
# blocks

cdef bint read_block_number(Cursor* c, Key* key, PlannedBlock* block) noexcept nogil:
    if is_key(key, b"number"):
        block.has_number = True
        return once(key, 0) and take_uint64(c, &block.number)
    if is_key(key, b"time"):
        block.has_time = True
        return once(key, 1) and take_uint64(c, &block.time)
    if is_key(key, b"gasLimit"):
        block.has_gas_limit = True
        return once(key, 2) and take_uint64(c, &block.gas_limit)
    if is_key(key, b"baseFeePerGas"):
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
    if is_key(key, b"feeRecipient"):
        block.has_fee_recipient = True
        return once(key, 6) and take_fixed(c, block.fee_recipient.b, 20)
    if is_key(key, b"prevRandao"):
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
