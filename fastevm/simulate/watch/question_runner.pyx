"""Runs one question after the other and collects the reads of each.

The world loads accounts and slots on first use, so after an execution its tables are the read set,
including the reads of reverted frames. A balance or nonce counts as read only if the execution
observed its value: adding to a balance does not. The machine marks the members of the block context
that it reads.
"""

from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from libc.stdint cimport UINT64_MAX, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from fastevm.core.execution.transaction.transaction_result cimport TX_CANCELLED, TX_OUT_OF_MEMORY
from fastevm.core.interpreter.machine cimport (
    READS_ANYTHING,
    READS_BASE_FEE,
    READS_BLOCK_HASH,
    READS_BLOB_BASE_FEE,
    READS_COINBASE,
    READS_NUMBER,
    READS_TIMESTAMP,
    BlockContext,
    ContextSpans,
    Span,
)
from fastevm.core.primitives.buffer cimport Buffer, buffer_append, buffer_free
from fastevm.core.primitives.hashes cimport address_eq
from fastevm.core.primitives.intrinsics cimport atomic_store_int, process_seed
from fastevm.core.primitives.table cimport fold, hash_address, hash_word
from fastevm.core.primitives.word cimport Word, word_copy, word_lt, word_set, word_sub, word_zero
from fastevm.core.simulation.plan cimport PlannedOverride, list_add
from fastevm.core.simulation.records cimport records_clear
from fastevm.core.simulation.refusals cimport INVALID_CALL, Refusal
from fastevm.core.state.account cimport Account
from fastevm.core.state.reader cimport READ_FOUND, AccountData
from fastevm.simulate.batch.bundles cimport RUN_HERE, Bundle
from fastevm.simulate.watch.index cimport (
    READ_ACCOUNT,
    READ_BALANCE,
    READ_BASE,
    READ_BASE_FEE_MIN,
    READ_ENVIRONMENT,
    READ_FUNDS,
    READ_GAS_LIMIT,
    READ_NONCE,
    READ_NUMBER_MIN,
    READ_SLOT,
    READ_TIMESTAMP_MIN,
)
from fastevm.simulate.watch.question cimport PART_COUNT, answer_bytes


cdef enum:
    KEPT_BYTES = 1 << 20      # buffer memory kept between two runs
    # Indices of block contexts for calls in the base's own block, by the fees that the calls see as
    # 0.
    NO_BLOB_FEE = 0
    NO_BASE_FEE = 1
    NO_FEES = 2
    FEE_CONTEXTS = 3


cdef void outcome_free(Outcome* outcome) noexcept nogil:
    PyMem_RawFree(outcome.answer)
    PyMem_RawFree(outcome.reads)
    PyMem_RawFree(outcome.refusal)
    outcome.answer = NULL
    outcome.reads = NULL
    outcome.refusal = NULL


cdef inline bint is_wide(const Word* amount) noexcept nogil:
    return (amount.d[2] | amount.d[3]) != 0


cdef inline const PlannedOverride* override_of(
    const Program* program, const Account* a
) noexcept nogil:
    cdef size_t i
    for i in range(program.override_count):
        if address_eq(&program.overrides[i].address, &a.address):
            return &program.overrides[i]
    return NULL


cdef class QuestionRunner(BundleRunner):
    """Runs questions on one thread; see `BundleRunner`."""

    def __cinit__(self, *args: object) -> None:
        self.records_reads = True
        self.results = Results.__new__(Results)

    def __dealloc__(self) -> None:
        buffer_free(&self.reads)

    def stand_on(self, view, base, layer, environment) -> None:
        """Changes the base; see the constructor of `BundleRunner`."""
        cdef BlockContext* context
        cdef size_t i
        self.rebase(view, base, layer, environment)
        for i in range(FEE_CONTEXTS if self.own_block else 0):
            context = <BlockContext*>list_add(&self.bundles.contexts, sizeof(BlockContext))
            if context == NULL:
                raise MemoryError
            context[0] = self.bundles.common
            if i != NO_BASE_FEE:
                word_zero(&context.blob_base_fee)
            if i != NO_BLOB_FEE:
                word_copy(&context.header_base_fee, &context.base_fee)
                word_zero(&context.base_fee)

    # ------------------------------------------------------------------------------------------
    # without the GIL

    cdef void borrow(self, const Program* program) noexcept nogil:
        """Makes the plan point to the arrays of the program."""
        cdef bint free = program.is_free and not self.shows_base_fee
        cdef bint needs_context = self.own_block and (free or not program.pays_blobs)
        memset(&self.item, 0, sizeof(Bundle))
        self.item.route = RUN_HERE
        self.item.trace_transfers = program.trace_transfers
        if needs_context:
            self.item.has_context = True
            self.item.context = NO_BLOB_FEE if not free else NO_BASE_FEE
            if free and not program.pays_blobs:
                self.item.context = NO_FEES
        self.block.first_call = self.block.first_override = 0
        self.block.call_count = program.call_count
        self.block.override_count = program.override_count
        self.bundles.items.items = &self.item
        self.bundles.plan.blocks.items = &self.block
        self.bundles.plan.calls.items = program.calls
        self.bundles.plan.overrides.items = program.overrides
        self.bundles.plan.slots.items = program.slots

    cdef void release_program(self) noexcept nogil:
        """Clears the plan's pointers to the program, so that the plan does not free the arrays."""
        self.bundles.items.items = NULL
        self.bundles.plan.blocks.items = NULL
        self.bundles.plan.calls.items = NULL
        self.bundles.plan.overrides.items = NULL
        self.bundles.plan.slots.items = NULL

    cdef void run_question(self, const Question* q, Outcome* out) noexcept nogil:
        cdef const Program* program = q.program
        cdef bint ok, known
        self.position = self.position + 1
        self.results.bundles.size = self.results.deltas.size = 0
        records_clear(&self.results.calls, KEPT_BYTES)
        self.machine.environment_reads = 0
        memset(&self.spans, 0, sizeof(ContextSpans))
        self.spans.timestamp.high = self.spans.number.high = self.spans.base_fee.high = UINT64_MAX
        self.machine.spans = &self.spans
        self.gas_needed = 0
        self.borrow(program)
        ok = self.run_bundle(self.results, 0)
        self.release_program()
        if not ok and self.refusal.code == INVALID_CALL and self.refusal.error == TX_CANCELLED:
            out.state = STOPPED_RUN
            out.is_late = self.overdue == self.position + 1 and not self.closed
            if not self.closed:
                atomic_store_int(<int*>&self.cancelled, False)
            self.overdue = 0
            return
        if not ok and self.refusal.code == INVALID_CALL and self.refusal.error == TX_OUT_OF_MEMORY:
            out.state = NO_MEMORY
            return
        out.state = ANSWERED if ok else REFUSED_RUN
        if not self.collect(program):
            out.state = NO_MEMORY
            return
        known = (
            q.reads != NULL and q.reads.fingerprint[0] == self.fingerprint[0]
            and q.reads.fingerprint[1] == self.fingerprint[1]
        )
        if not known:
            out.reads = <Read*>PyMem_RawMalloc(self.reads.size + 1)
            if out.reads == NULL:
                out.state = NO_MEMORY
                return
            memcpy(out.reads, self.reads.bytes, self.reads.size)
            out.read_count = <uint32_t>(self.reads.size // sizeof(Read))
            out.fingerprint[0] = self.fingerprint[0]
            out.fingerprint[1] = self.fingerprint[1]
            out.oldest_hash = self.machine.oldest_hash
            out.newest_hash = self.machine.newest_hash
        out.answer = self.copy_answer(q.answer)
        if out.answer == q.answer:
            out.answer = NULL
        elif out.answer == NULL:
            out.state = NO_MEMORY
        if out.state == REFUSED_RUN:
            out.refusal = <Refusal*>PyMem_RawMalloc(sizeof(Refusal))
            if out.refusal == NULL:
                out.state = NO_MEMORY
            else:
                out.refusal[0] = self.refusal

    # ------------------------------------------------------------------------------------------
    # reads

    cdef bint note_read(self, const Read* read) noexcept nogil:
        """Adds a read, and mixes it into the fingerprint."""
        cdef uint64_t hash
        cdef int i
        for i in range(2):
            hash = hash_address(&read.address, self.fingerprint[i] ^ read.kind)
            self.fingerprint[i] = fold(
                hash ^ <uint64_t>0x9e3779b97f4a7c15, hash_word(&read.word, self.fingerprint[i])
            )
        return buffer_append(&self.reads, read, sizeof(Read))

    cdef bint note(self, const Account* a, uint32_t kind) noexcept nogil:
        cdef Read read
        memset(&read, 0, sizeof(Read))
        read.address = a.address
        read.kind = kind
        return self.note_read(&read)

    cdef bint collect(self, const Program* program) noexcept nogil:
        """Collects the reads of the execution. Returns False if memory is exhausted."""
        cdef size_t i
        self.reads.size = 0
        self.fingerprint[0] = process_seed()
        self.fingerprint[1] = ~process_seed()
        if program.call_count == 0 and program.override_count == 0:
            return True       # nothing ran: the world still has the reads of another question
        for i in range(self.world.account_count):
            if not self.collect_account(program, self.world.account_list[i]):
                return False
        return self.collect_environment(program)

    cdef bint collect_account(self, const Program* program, const Account* a) noexcept nogil:
        cdef const PlannedOverride* override = override_of(program, a)
        cdef Read read
        cdef uint32_t i
        if not self.note(a, READ_ACCOUNT):
            return False
        if a.nonce_seen and not self.note(a, READ_NONCE):
            return False
        if (override == NULL or not override.has_balance) and not self.collect_funds(program, a):
            return False
        if a.slot_mask == 0:
            return True
        memset(&read, 0, sizeof(Read))
        read.address = a.address
        read.kind = READ_SLOT
        for i in range(a.slot_mask + 1):
            if a.slots[i] != NULL:
                word_copy(&read.word, &a.slots[i].key)
                if not self.note_read(&read):
                    return False
        return True

    cdef bint collect_funds(self, const Program* program, const Account* a) noexcept nogil:
        """Collects the read of a balance that was only spent from, as a threshold.

        The rules are those of the validation of Block-STM: core/state/speculation.pyx.
        """
        cdef AccountData data
        cdef Read read
        cdef bint existed
        if a.balance_seen or is_wide(&a.balance):
            return self.note(a, READ_BALANCE)
        if a.exists and not a.balance_taken:
            return True
        memset(&data, 0, sizeof(data))
        existed = self.reader.account(self.reader.base, &a.address, &data) == READ_FOUND
        if not a.exists:
            return not existed or self.note(a, READ_BALANCE)
        if not word_lt(&a.lowest, &data.balance):
            return True       # the account never spent more than it had received before
        if is_wide(&data.balance) or (data.nonce == 0 and data.code == NULL):
            return self.note(a, READ_BALANCE)     # emptiness follows from the balance
        memset(&read, 0, sizeof(Read))
        read.address = a.address
        read.kind = READ_FUNDS
        word_sub(&read.word, &data.balance, &a.lowest)
        return self.note_read(&read)

    cdef bint collect_environment(self, const Program* program) noexcept nogil:
        cdef uint32_t marks = self.machine.environment_reads
        cdef uint32_t mark = 1
        cdef bint has_fee = not self.own_block or not program.is_free or self.shows_base_fee
        cdef Read read
        memset(&read, 0, sizeof(Read))
        read.kind = READ_ENVIRONMENT
        if marks & READS_ANYTHING:
            marks = 0
            read.kind = READ_BASE
            if not self.note_read(&read):
                return False
            read.kind = READ_ENVIRONMENT
        if self.world.coinbase_seen:
            marks |= READS_COINBASE
        if not has_fee:
            marks &= ~<uint32_t>READS_BASE_FEE
        if not marks & READS_TIMESTAMP:
            if not self.collect_span(&self.spans.timestamp, READ_TIMESTAMP_MIN):
                return False
        if not marks & READS_NUMBER:
            if not self.collect_span(&self.spans.number, READ_NUMBER_MIN):
                return False
        if has_fee and not marks & READS_BASE_FEE:
            if not self.collect_span(&self.spans.base_fee, READ_BASE_FEE_MIN):
                return False
        if self.own_block and not program.pays_blobs:
            marks &= ~<uint32_t>READS_BLOB_BASE_FEE
        while marks:
            if marks & mark:
                word_set(&read.word, mark)
                if not self.note_read(&read):
                    return False
                marks ^= mark
            mark <<= 1
        if self.machine.environment_reads & READS_BLOCK_HASH:
            self.fingerprint[0] = fold(
                self.fingerprint[0] ^ self.machine.oldest_hash,
                self.fingerprint[1] ^ self.machine.newest_hash,
            )
        if self.gas_needed != 0:
            read.kind = READ_GAS_LIMIT
            word_set(&read.word, self.gas_needed)
            return self.note_read(&read)
        return True

    cdef bint collect_span(self, const Span* span, uint32_t least) noexcept nogil:
        """Notes the bounds of a member that was only compared, with the kinds ``least`` and
        ``least`` + 1.
        """
        cdef Read read
        memset(&read, 0, sizeof(Read))
        read.kind = least
        word_set(&read.word, span.low)
        if span.low != 0 and not self.note_read(&read):
            return False
        read.kind = least + 1
        word_set(&read.word, UINT64_MAX - span.high)
        return span.high == UINT64_MAX or self.note_read(&read)

    # ------------------------------------------------------------------------------------------
    # the answer

    cdef Answer* copy_answer(self, const Answer* before) noexcept nogil:
        """Returns the answer of the execution, or ``before`` if it is equal.

        NULL if memory is exhausted.
        """
        cdef const Buffer* parts[PART_COUNT]
        cdef Answer* copy
        cdef uint8_t* at
        cdef const uint8_t* old
        cdef size_t size = sizeof(Answer)
        cdef bint same = before != NULL
        cdef int i
        parts[0] = &self.results.bundles
        parts[1] = &self.results.calls.calls
        parts[2] = &self.results.calls.output
        parts[3] = &self.results.calls.logs
        parts[4] = &self.results.calls.log_data
        parts[5] = &self.results.deltas
        for i in range(PART_COUNT):
            size += parts[i].size
            same = same and before.sizes[i] == parts[i].size
        if same:
            old = answer_bytes(before)
            for i in range(PART_COUNT):
                if parts[i].size and memcmp(old, parts[i].bytes, parts[i].size) != 0:
                    same = False
                    break
                old += parts[i].size
        if same:
            return <Answer*>before
        copy = <Answer*>PyMem_RawMalloc(size)
        if copy == NULL:
            return NULL
        memset(copy, 0, sizeof(Answer))
        copy.references = 1
        at = <uint8_t*>copy + sizeof(Answer)
        for i in range(PART_COUNT):
            copy.sizes[i] = <uint32_t>parts[i].size
            if parts[i].size:
                memcpy(at, parts[i].bytes, parts[i].size)
            at += parts[i].size
        return copy
