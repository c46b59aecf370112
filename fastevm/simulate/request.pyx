"""Reads the params of eth_simulateV1 into plain C values, in one pass without the GIL.

Only the usual form is read: known members, each once, hex as nodes write it, calls without lists.
Everything else (and every fault) is left to the general reader, which knows all of it and the words
of each error.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_RawFree
from libc.stdint cimport uint8_t

from fastevm.execution.tx cimport DYNAMIC_FEE_TX, LEGACY_TX, SENDER_KNOWN
from fastevm.primitives.arena cimport arena_free, arena_new
from fastevm.primitives.hashes cimport address_eq
from fastevm.primitives.word cimport Word, word_copy, word_load
from fastevm.simulate.jobs cimport CallJob, OverrideJob, SlotJob, list_add
from fastevm.wire.text.json_reader cimport (
    STEP_END,
    STEP_MORE,
    Cursor,
    Key,
    Step,
    hex_fixed,
    is_key,
    next_item,
    next_member,
    once,
    take,
    take_data,
    take_fixed,
    take_flag,
    take_hash_word,
    take_uint64,
    take_word,
)
from fastevm.state.code cimport code_new, code_release

from fastevm.simulate.blocks import MAX_BLOCKS, MAX_CALLS, MAX_CALLS_PER_BLOCK


cdef enum:
    ARENA_CHUNK = 64 * 1024
    MOST_OVERRIDES = 64          # of one block; each is held against those before it


cdef size_t MOST_BLOCKS = MAX_BLOCKS
cdef size_t MOST_CALLS = MAX_CALLS
cdef size_t MOST_CALLS_OF_BLOCK = MAX_CALLS_PER_BLOCK


# The members of a call object.
cdef enum:
    FROM = 0
    TO = 1
    GAS = 2
    VALUE = 3
    NONCE = 4
    INPUT = 5
    DATA = 6
    GAS_PRICE = 7
    FEE_CAP = 8
    TIP = 9
    CHAIN_ID = 10
    KIND = 11


cdef inline bint has(const Key* key, int member) noexcept nogil:
    return (key.seen >> member) & 1


# ----------------------------------------------------------------------------------------------
# calls

cdef bint read_call(Request r, Cursor* c) noexcept nogil:
    cdef CallJob* job = <CallJob*>list_add(&r.calls, sizeof(CallJob))
    cdef Key key
    cdef size_t count = 0
    cdef Step step = STEP_MORE
    if job == NULL or r.calls.count > MOST_CALLS or not take(c, c'{'):
        return False
    key.seen = 0
    while True:
        step = next_member(c, &count, &key)
        if step != STEP_MORE:
            break
        if not (read_message(r, c, &key, job) or read_terms(r, c, &key, job)):
            return False
    if step != STEP_END or (has(&key, GAS_PRICE) and (has(&key, FEE_CAP) or has(&key, TIP))):
        return False
    job.default_gas = not has(&key, GAS)
    job.default_nonce = not has(&key, NONCE)
    job.tx.is_create = not has(&key, TO)
    job.tx.sender_state = SENDER_KNOWN
    job.tx.authorities_known = True
    job.tx.tx_type = DYNAMIC_FEE_TX
    job.tx.has_chain_id = True
    if has(&key, GAS_PRICE):
        job.tx.tx_type = LEGACY_TX
        job.tx.has_chain_id = False
        word_copy(&job.tx.max_priority_fee, &job.tx.max_fee)
    return True


cdef bint read_message(Request r, Cursor* c, Key* key, CallJob* job) noexcept nogil:
    """Who calls whom with what."""
    if is_key(key, b"from"):
        return once(key, FROM) and take_fixed(c, job.tx.sender.b, 20)
    if is_key(key, b"to"):
        return once(key, TO) and take_fixed(c, job.tx.to.b, 20)
    if is_key(key, b"data"):
        # beside an input it would have no meaning, and might be anything
        return (not has(key, INPUT) and once(key, DATA)
                and take_data(c, r.arena, &job.tx.data, &job.tx.size))
    if is_key(key, b"input"):
        return (not has(key, DATA) and once(key, INPUT)
                and take_data(c, r.arena, &job.tx.data, &job.tx.size))
    if is_key(key, b"value"):
        return once(key, VALUE) and take_word(c, &job.tx.value)
    return False


cdef bint read_terms(Request r, Cursor* c, Key* key, CallJob* job) noexcept nogil:
    """On what terms."""
    cdef uint64_t number = 0
    if is_key(key, b"gas"):
        return once(key, GAS) and take_uint64(c, &job.tx.gas_limit)
    if is_key(key, b"nonce"):
        return once(key, NONCE) and take_uint64(c, &job.tx.nonce)
    if is_key(key, b"gasPrice"):
        return once(key, GAS_PRICE) and take_word(c, &job.tx.max_fee)
    if is_key(key, b"maxFeePerGas"):
        return once(key, FEE_CAP) and take_word(c, &job.tx.max_fee)
    if is_key(key, b"maxPriorityFeePerGas"):
        return once(key, TIP) and take_word(c, &job.tx.max_priority_fee)
    if is_key(key, b"type"):
        return once(key, KIND) and take_uint64(c, &number)
    if not is_key(key, b"chainId") or not once(key, CHAIN_ID) or not take_uint64(c, &number):
        return False
    if r.names_chain and r.chain_id != number:
        return False
    r.names_chain = True
    r.chain_id = number
    return True


cdef bint read_calls(Request r, Cursor* c, BlockJob* block) noexcept nogil:
    cdef size_t count = 0
    cdef Step step = STEP_MORE
    if not take(c, c'['):
        return False
    block.first_call = r.calls.count
    while True:
        step = next_item(c, &count)
        if step != STEP_MORE:
            break
        if count > MOST_CALLS_OF_BLOCK or not read_call(r, c):
            return False
    block.call_count = count
    return step == STEP_END


# ----------------------------------------------------------------------------------------------
# overrides

cdef bint read_slots(Request r, Cursor* c, OverrideJob* job) noexcept nogil:
    cdef SlotJob* slot
    cdef Key key
    cdef size_t count = 0
    cdef uint8_t word[32]
    cdef Step step = STEP_MORE
    if not take(c, c'{'):
        return False
    while True:
        step = next_member(c, &count, &key)
        if step != STEP_MORE:
            break
        slot = <SlotJob*>list_add(&r.slots, sizeof(SlotJob))
        if slot == NULL or not hex_fixed(key.text, key.size, word, 32):
            return False
        word_load(&slot.key, word)
        if not take_hash_word(c, &slot.value):
            return False
    job.slot_count = count
    job.sets_slots = count != 0
    return step == STEP_END


cdef bint read_code(Request r, Cursor* c, OverrideJob* job) noexcept nogil:
    cdef const uint8_t* code = NULL
    cdef size_t size = 0
    if not take_data(c, r.arena, &code, &size):
        return False
    job.code = code_new(code, size, NULL, False)
    job.has_code = True
    return job.code != NULL


cdef bint read_account_member(Request r, Cursor* c, Key* key, OverrideJob* job) noexcept nogil:
    """Storage is given once: replaced or changed, not both."""
    if is_key(key, b"balance"):
        job.has_balance = True
        return once(key, 0) and take_word(c, &job.balance)
    if is_key(key, b"nonce"):
        job.has_nonce = True
        return once(key, 1) and take_uint64(c, &job.nonce)
    if is_key(key, b"code"):
        return once(key, 2) and read_code(r, c, job)
    job.resets = is_key(key, b"state")
    if job.resets or is_key(key, b"stateDiff"):
        return once(key, 3) and read_slots(r, c, job)
    return False


cdef bint read_account(Request r, Cursor* c, OverrideJob* job) noexcept nogil:
    cdef Key key
    cdef size_t count = 0
    cdef Step step = STEP_MORE
    if not take(c, c'{'):
        return False
    job.first_slot = r.slots.count
    key.seen = 0
    while True:
        step = next_member(c, &count, &key)
        if step != STEP_MORE:
            break
        if not read_account_member(r, c, &key, job):
            return False
    return step == STEP_END


cdef bint is_new(Request r, size_t first) noexcept nogil:
    """Whether the override read last is of an account of its own."""
    cdef const OverrideJob* jobs = <const OverrideJob*>r.overrides.items
    cdef size_t last = r.overrides.count - 1
    cdef size_t i
    if last - first >= MOST_OVERRIDES:
        return False
    for i in range(first, last):
        if address_eq(&jobs[i].address, &jobs[last].address):
            return False
    return True


cdef bint read_states(Request r, Cursor* c, BlockJob* block) noexcept nogil:
    cdef OverrideJob* job
    cdef Key key
    cdef size_t count = 0
    cdef Step step = STEP_MORE
    if not take(c, c'{'):
        return False
    block.first_override = r.overrides.count
    while True:
        step = next_member(c, &count, &key)
        if step != STEP_MORE:
            break
        job = <OverrideJob*>list_add(&r.overrides, sizeof(OverrideJob))
        if job == NULL or not hex_fixed(key.text, key.size, job.address.b, 20):
            return False
        if not is_new(r, block.first_override) or not read_account(r, c, job):
            return False
    block.override_count = count
    return step == STEP_END


# ----------------------------------------------------------------------------------------------
# blocks

cdef bint read_block_number(Cursor* c, Key* key, BlockJob* block) noexcept nogil:
    cdef Word ignored
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
    # proof of stake has none
    return is_key(key, b"difficulty") and once(key, 5) and take_word(c, &ignored)


cdef bint read_block_name(Cursor* c, Key* key, BlockJob* block) noexcept nogil:
    if is_key(key, b"feeRecipient"):
        block.has_fee_recipient = True
        return once(key, 6) and take_fixed(c, block.fee_recipient.b, 20)
    if is_key(key, b"prevRandao"):
        block.has_prev_randao = True
        return once(key, 7) and take_fixed(c, block.prev_randao.b, 32)
    if is_key(key, b"beaconRoot"):
        block.has_beacon_root = True
        return once(key, 8) and take_fixed(c, block.beacon_root.b, 32)
    return False


cdef bint read_overridden_block(Cursor* c, BlockJob* block) noexcept nogil:
    cdef Key key
    cdef size_t count = 0
    cdef Step step = STEP_MORE
    if not take(c, c'{'):
        return False
    key.seen = 0
    while True:
        step = next_member(c, &count, &key)
        if step != STEP_MORE:
            return step == STEP_END
        if not (read_block_number(c, &key, block) or read_block_name(c, &key, block)):
            return False


cdef bint read_block(Request r, Cursor* c) noexcept nogil:
    cdef BlockJob* block = <BlockJob*>list_add(&r.blocks, sizeof(BlockJob))
    cdef Key key
    cdef size_t count = 0
    cdef bint fits
    cdef Step step = STEP_MORE
    if block == NULL or not take(c, c'{'):
        return False
    key.seen = 0
    while True:
        step = next_member(c, &count, &key)
        if step != STEP_MORE:
            return step == STEP_END
        if is_key(&key, b"calls"):
            fits = once(&key, 0) and read_calls(r, c, block)
        elif is_key(&key, b"stateOverrides"):
            fits = once(&key, 1) and read_states(r, c, block)
        else:
            fits = (is_key(&key, b"blockOverrides") and once(&key, 2)
                    and read_overridden_block(c, block))
        if not fits:
            return False


cdef bint read_blocks(Request r, Cursor* c) noexcept nogil:
    cdef size_t count = 0
    cdef Step step = STEP_MORE
    if not take(c, c'['):
        return False
    while True:
        step = next_item(c, &count)
        if step != STEP_MORE:
            return step == STEP_END and count != 0
        if count > MOST_BLOCKS or not read_block(r, c):
            return False


cdef bint read_payload(Request r, Cursor* c) noexcept nogil:
    cdef Key key
    cdef size_t count = 0
    cdef bint fits, full = False
    cdef Step step = STEP_MORE
    if not take(c, c'{'):
        return False
    key.seen = 0
    while True:
        step = next_member(c, &count, &key)
        if step != STEP_MORE:
            # transactions in full are shown by the general writer
            return step == STEP_END and r.blocks.count != 0 and not full
        if is_key(&key, b"blockStateCalls"):
            fits = once(&key, 0) and read_blocks(r, c)
        elif is_key(&key, b"validation"):
            fits = once(&key, 1) and take_flag(c, &r.validation)
        elif is_key(&key, b"traceTransfers"):
            fits = once(&key, 2) and take_flag(c, &r.trace_transfers)
        else:
            fits = (is_key(&key, b"returnFullTransactions") and once(&key, 3)
                    and take_flag(c, &full))
        if not fits:
            return False


cdef class Request:
    """A request in the usual form. Made by ``read``."""

    def __cinit__(self) -> None:
        self.arena = arena_new(ARENA_CHUNK)
        if self.arena == NULL:
            raise MemoryError

    def __init__(self) -> None:
        raise TypeError("use Request.read")

    def __dealloc__(self) -> None:
        cdef size_t i
        for i in range(self.overrides.count):
            code_release((<OverrideJob*>self.overrides.items)[i].code)
        PyMem_RawFree(self.blocks.items)
        PyMem_RawFree(self.calls.items)
        PyMem_RawFree(self.overrides.items)
        PyMem_RawFree(self.slots.items)
        arena_free(self.arena)

    @staticmethod
    def read(bytes params not None) -> tuple[Request, bytes] | None:
        """The request in the text of the params (an array), and the text of the params after it
        (an array too); None for any other form."""
        cdef Request request = Request.__new__(Request)
        cdef Cursor c
        cdef bint fits
        c.at = PyBytes_AS_STRING(params)
        c.end = c.at + PyBytes_GET_SIZE(params)
        with nogil:
            fits = take(&c, c'[') and read_payload(request, &c)
        if not fits:
            return None
        rest = c.at[:c.end - c.at].strip()
        others = rest.removeprefix(b",").lstrip()
        if others == b"]" and others != rest:
            return None
        return request, b"[" + others
