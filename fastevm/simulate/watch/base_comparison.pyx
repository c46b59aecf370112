"""Compares two bases (states on which a watch ran) and finds the questions whose reads changed.

Layers share the nodes that did not change, so a comparison of two layers walks only where they
differ. This holds for the next slice, a sealed block, a reorganisation and a withdrawn slice. The
index is searched for each difference. Values are compared, not writes: a value that is written
again or returns to its old value is no change.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree, PyMem_RawMalloc
from libc.stdint cimport UINT64_MAX, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport qsort
from libc.string cimport memcmp, memcpy, memset

from fastevm.core.execution.block.block_context cimport fill_environment
from fastevm.core.interpreter.machine cimport (
    READS_BASE_FEE,
    READS_BLOB_BASE_FEE,
    READS_BLOCK_HASH,
    READS_COINBASE,
    READS_GAS_LIMIT,
    READS_NUMBER,
    READS_RANDOMNESS,
    READS_SLOT_NUMBER,
    READS_TIMESTAMP,
    BlockContext,
    visible_number,
)
from fastevm.core.primitives.hashes cimport Address, Hash, address_eq, hash_eq
from fastevm.core.primitives.persistent_map cimport map_differences
from fastevm.core.primitives.word cimport (
    Word,
    word_copy,
    word_eq,
    word_fits64,
    word_is_zero,
    word_lt,
    word_set,
    word_zero,
)
from fastevm.core.primitives.word_map cimport word_map_differences
from fastevm.core.spec.constants cimport BLOCK_HASH_WINDOW
from fastevm.core.state.account_map cimport ACCOUNT_MAP, AccountLeaf
from fastevm.core.state.layer cimport Layer
from fastevm.core.state.reader cimport READ_FOUND, AccountData, Reader
from fastevm.simulate.watch.index cimport (
    NO_KEY,
    READ_ACCOUNT,
    READ_BALANCE,
    READ_ENVIRONMENT,
    READ_FUNDS,
    READ_GAS_LIMIT,
    READ_BASE,
    READ_BASE_FEE_MAX,
    READ_BASE_FEE_MIN,
    READ_NONCE,
    READ_NUMBER_MAX,
    READ_NUMBER_MIN,
    READ_SLOT,
    READ_TIMESTAMP_MAX,
    READ_TIMESTAMP_MIN,
    Key,
    Read,
    index_add,
    index_bytes,
    index_close,
    index_find,
    index_key,
    index_open,
    index_remove,
    is_threshold,
    key_at,
    key_questions,
)
from fastevm.simulate.watch.program cimport NEXT_BLOCK
from fastevm.simulate.watch.question cimport Question, Reads, reads_contain, threshold_of
from fastevm.simulate.watch.question_runner cimport Outcome
from fastevm.simulate.watch.question_list cimport QuestionList, question_list_wait

from fastevm.core.primitives.replace import replace
from fastevm.core.state.remote import resolved


# Bits of `KeptValue.marks`: properties of an account besides its code hash.
cdef enum AccountMark:
    EXISTS = 1
    IS_DEAD = 2
    HAS_NONCE = 4
    HAS_STORAGE = 8
    IS_WIDE = 16              # adding to the balance or nonce could overflow


cdef inline bint is_wide(const Word* amount) noexcept nogil:
    return (amount.d[2] | amount.d[3]) != 0


# ----------------------------------------------------------------------------------------------
# letting questions wait

cdef bint question_reads(void* context, uint32_t position, uint32_t key) noexcept nogil:
    """Returns whether a question still reads a key. If not, its entry in the key's list is a ghost.
    """
    cdef const QuestionList* questions = <const QuestionList*>context
    cdef const Question* q = NULL
    if position < questions.count:
        q = questions.items[position]
    return q != NULL and reads_contain(q.reads, key)


cdef void key_changed(BaseComparisonState* comparison, uint32_t at) noexcept nogil:
    """Queues all questions that read the key."""
    cdef const Key* key
    cdef const uint32_t* ids
    cdef uint32_t i
    if at == NO_KEY:
        return
    key = key_at(&comparison.index, at)
    ids = key_questions(key)
    comparison.changed_keys += 1
    for i in range(key.count):
        if question_reads(comparison.questions, ids[i], at):
            if not question_list_wait(comparison.questions, ids[i]):
                comparison.failed = True


cdef void amount_changed(BaseComparisonState* comparison, uint32_t at, const Word* amount) noexcept nogil:
    """Queues the questions whose threshold is higher than the new amount."""
    cdef Key* key
    cdef const uint32_t* ids
    cdef const Word* needed
    cdef Word highest
    cdef uint32_t i
    word_zero(&highest)
    if at == NO_KEY:
        return
    key = key_at(&comparison.index, at)
    if not word_lt(amount, &key.word):
        return
    ids = key_questions(key)
    comparison.changed_keys += 1
    for i in range(key.count):
        if not question_reads(comparison.questions, ids[i], at):
            continue
        needed = threshold_of(comparison.questions.items[ids[i]].reads, at)
        if needed == NULL:
            continue
        if word_lt(amount, needed):
            if not question_list_wait(comparison.questions, ids[i]):
                comparison.failed = True
        elif word_lt(&highest, needed):
            word_copy(&highest, needed)
    # the waiting questions raise the threshold again when they have run
    word_copy(&key.word, &highest)


# ----------------------------------------------------------------------------------------------
# comparing layers

cdef uint32_t marks_of(const AccountData* a, bint exists) noexcept nogil:
    cdef uint32_t marks = 0
    if not exists:
        return IS_DEAD
    marks = EXISTS
    if a.nonce == 0 and a.code == NULL and word_is_zero(&a.balance):
        marks |= IS_DEAD
    if a.nonce != 0:
        marks |= HAS_NONCE
    if a.has_storage:
        marks |= HAS_STORAGE
    return marks


cdef bint is_overflowing(const AccountData* a) noexcept nogil:
    return is_wide(&a.balance) or a.nonce >> 63 != 0


cdef void compare_accounts(
    BaseComparisonState* comparison, const Address* address, const AccountData* a, bint in_a,
    const AccountData* b, bint in_b
) noexcept nogil:
    """Compares the fields of an account, each of which has its own key."""
    cdef bint same_balance = word_eq(&a.balance, &b.balance)
    cdef bint wide = is_overflowing(a) or is_overflowing(b)
    cdef bint same = (
        marks_of(a, in_a) == marks_of(b, in_b)
        and memcmp(a.code_hash.b, b.code_hash.b, 32) == 0
    )
    if not same or (wide and not (same_balance and a.nonce == b.nonce)):
        key_changed(comparison, index_find(&comparison.index, READ_ACCOUNT, address, NULL))
    if a.nonce != b.nonce:
        key_changed(comparison, index_find(&comparison.index, READ_NONCE, address, NULL))
    if not same_balance:
        key_changed(comparison, index_find(&comparison.index, READ_BALANCE, address, NULL))
        amount_changed(
            comparison, index_find(&comparison.index, READ_FUNDS, address, NULL), &b.balance
        )


cdef void read_leaf(const AccountLeaf* leaf, AccountData* out) noexcept nogil:
    memset(out, 0, sizeof(AccountData))
    if leaf == NULL:
        return
    word_copy(&out.balance, &leaf.balance)
    out.nonce = leaf.nonce
    out.code = leaf.code
    if leaf.code != NULL:
        out.code_hash = leaf.code_hash
    out.has_storage = leaf.storage != 0


cdef bint slot_differs(const Word* key, void* context) noexcept nogil:
    cdef BaseComparisonState* comparison = <BaseComparisonState*>context
    key_changed(comparison, index_find(&comparison.index, READ_SLOT, comparison.address, key))
    return True


cdef bint account_differs(void* in_a, void* in_b, void* context) noexcept nogil:
    cdef BaseComparisonState* comparison = <BaseComparisonState*>context
    cdef const AccountLeaf* a = <const AccountLeaf*>in_a
    cdef const AccountLeaf* b = <const AccountLeaf*>in_b
    cdef const Address* address = &a.address if a != NULL else &b.address
    cdef AccountData before, after
    memset(&before, 0, sizeof(before))
    memset(&after, 0, sizeof(after))
    if index_find(&comparison.index, READ_ACCOUNT, address, NULL) == NO_KEY:
        return True           # a question that reads a field or a slot also reads the account
    read_leaf(a, &before)
    read_leaf(b, &after)
    compare_accounts(comparison, address, &before, a != NULL, &after, b != NULL)
    comparison.address = address
    return word_map_differences(
        a.storage if a != NULL else 0, b.storage if b != NULL else 0, slot_differs, comparison
    )


# ----------------------------------------------------------------------------------------------
# comparing the value of every key: for bases that share no layers, and for remote states

cdef bint read_base_account(
    const Reader* reader, const Address* address, AccountData* out
) noexcept nogil:
    cdef bint found
    memset(out, 0, sizeof(AccountData))
    found = reader.account(reader.base, address, out) == READ_FOUND
    if not found:
        memset(out, 0, sizeof(AccountData))
    elif out.code == NULL:
        memset(&out.code_hash, 0, sizeof(Hash))
    return found


cdef void value_of(const Reader* reader, const Key* key, KeptValue* out) noexcept nogil:
    """Reads the value of a key of an account."""
    cdef AccountData data
    cdef bint found
    memset(&data, 0, sizeof(data))
    memset(out, 0, sizeof(KeptValue))
    found = read_base_account(reader, &key.address, &data)
    if key.kind == READ_ACCOUNT:
        memcpy(&out.value, data.code_hash.b, 32)
        out.marks = marks_of(&data, found)
        if is_overflowing(&data):
            out.marks |= IS_WIDE
    elif key.kind == READ_NONCE:
        word_set(&out.value, data.nonce)
    elif key.kind == READ_SLOT:
        if found and data.has_storage and reader.slot(
            reader.base, data.storage, &key.address, &key.word, &out.value
        ) != READ_FOUND:
            memset(&out.value, 0, sizeof(Word))
    else:
        word_copy(&out.value, &data.balance)


cdef void compare_values(
    BaseComparisonState* comparison, const Reader* before, const KeptValue* kept, const Reader* after
) noexcept nogil:
    """Compares each key's value with its value on the previous base, or with the kept value."""
    cdef const Key* key
    cdef KeptValue old, new
    cdef uint32_t i
    memset(&old, 0, sizeof(old))
    memset(&new, 0, sizeof(new))
    for i in range(comparison.index.key_count):
        key = key_at(&comparison.index, i)
        if key.count == 0 or key.kind > READ_SLOT:
            continue
        if kept != NULL:
            old = kept[i]
        else:
            value_of(before, key, &old)
        value_of(after, key, &new)
        if key.kind == READ_FUNDS:
            amount_changed(comparison, i, &new.value)
        elif old.marks != new.marks or new.marks & IS_WIDE or not word_eq(&old.value, &new.value):
            key_changed(comparison, i)


# ----------------------------------------------------------------------------------------------
# comparing the block environment

cdef bint hash_before(
    const BlockContext* context, uint64_t number, Hash* out
) noexcept nogil:
    """Sets ``out`` to the result of BLOCKHASH for a block number. Returns False if the result is 0.

    For a block older than the known ancestors, ``out`` gets a value that only stands for "not 0".
    """
    cdef uint64_t back = context.number - number
    memset(out, 0, sizeof(Hash))
    if number >= context.number or back > BLOCK_HASH_WINDOW:
        return False
    if back > context.ancestor_count:
        memset(out, 0xff, sizeof(Hash))
    else:
        out[0] = context.ancestors[back - 1]
    return True


cdef bint hashes_differ(
    const Reads* reads, const BlockContext* a, const BlockContext* b
) noexcept nogil:
    cdef uint64_t highest = max(a.number, b.number)
    cdef uint64_t lowest = min(a.number, b.number)
    cdef uint64_t number
    cdef Hash in_a, in_b
    if a.l1_number != 0 or b.l1_number != 0:
        # hashes are read as slots, so only the L1 number matters
        return a.l1_number != b.l1_number
    lowest = lowest - BLOCK_HASH_WINDOW if lowest > BLOCK_HASH_WINDOW else 0
    if highest - lowest > 4 * BLOCK_HASH_WINDOW:
        return True
    lowest = max(lowest, reads.oldest_hash)
    if reads.newest_hash < highest:
        highest = reads.newest_hash + 1
    for number in range(lowest, highest):
        hash_before(a, number, &in_a)
        hash_before(b, number, &in_b)
        if not hash_eq(&in_a, &in_b):
            return True
    return False


cdef void compare_hashes(
    BaseComparisonState* comparison, uint32_t at, const BlockContext* a, const BlockContext* b
) noexcept nogil:
    cdef const Key* key
    cdef const uint32_t* ids
    cdef uint32_t i
    if at == NO_KEY:
        return
    key = key_at(&comparison.index, at)
    ids = key_questions(key)
    for i in range(key.count):
        if question_reads(comparison.questions, ids[i], at):
            if hashes_differ(comparison.questions.items[ids[i]].reads, a, b):
                if not question_list_wait(comparison.questions, ids[i]):
                    comparison.failed = True


cdef uint32_t marks_that_differ(const BlockContext* a, const BlockContext* b) noexcept nogil:
    cdef uint32_t marks = 0
    if not address_eq(&a.coinbase, &b.coinbase):
        marks |= READS_COINBASE
    if a.number != b.number or a.l1_number != b.l1_number:
        marks |= READS_NUMBER
    if a.timestamp != b.timestamp:
        marks |= READS_TIMESTAMP
    if a.gas_limit != b.gas_limit:
        marks |= READS_GAS_LIMIT
    if not (word_eq(&a.prev_randao, &b.prev_randao) and word_eq(&a.difficulty, &b.difficulty)):
        marks |= READS_RANDOMNESS
    if not word_eq(&a.base_fee, &b.base_fee):
        marks |= READS_BASE_FEE
    if not word_eq(&a.blob_base_fee, &b.blob_base_fee):
        marks |= READS_BLOB_BASE_FEE
    if a.slot_number != b.slot_number:
        marks |= READS_SLOT_NUMBER
    return marks


cdef void compare_member(
    BaseComparisonState* comparison, uint64_t before, uint64_t after, uint32_t least, uint32_t most
) noexcept nogil:
    """Queues the questions for which the new value of the member is outside the compared bounds."""
    cdef Address nobody
    cdef Word amount
    memset(&nobody, 0, sizeof(Address))
    word_set(&amount, after if after < before else UINT64_MAX - after)
    if before != after:
        amount_changed(
            comparison, index_find(&comparison.index, least if after < before else most, &nobody, NULL), &amount
        )


cdef inline uint64_t saturated(const Word* amount) noexcept nogil:
    return amount.d[0] if word_fits64(amount) else UINT64_MAX


cdef void compare_contexts(
    BaseComparisonState* comparison, const BlockContext* a, const BlockContext* b
) noexcept nogil:
    cdef Address nobody
    cdef uint32_t marks = marks_that_differ(a, b)
    cdef uint32_t mark = 1
    cdef Word word
    memset(&nobody, 0, sizeof(Address))
    if marks & READS_COINBASE:
        # The coinbase is warm (EIP-3651): reading the account of the new coinbase costs less gas.
        key_changed(comparison, index_find(&comparison.index, READ_ACCOUNT, &b.coinbase, NULL))
    if marks & READS_GAS_LIMIT:
        word_set(&word, b.gas_limit)
        amount_changed(
            comparison, index_find(&comparison.index, READ_GAS_LIMIT, &nobody, NULL), &word
        )
    compare_member(comparison, a.timestamp, b.timestamp, READ_TIMESTAMP_MIN, READ_TIMESTAMP_MAX)
    compare_member(
        comparison, visible_number(a), visible_number(b), READ_NUMBER_MIN, READ_NUMBER_MAX
    )
    compare_member(
        comparison, saturated(&a.base_fee), saturated(&b.base_fee), READ_BASE_FEE_MIN, READ_BASE_FEE_MAX
    )
    word_set(&word, READS_BLOCK_HASH)
    compare_hashes(comparison, index_find(&comparison.index, READ_ENVIRONMENT, &nobody, &word), a, b)
    while marks:
        if marks & mark:
            word_set(&word, mark)
            key_changed(comparison, index_find(&comparison.index, READ_ENVIRONMENT, &nobody, &word))
            marks ^= mark
        mark <<= 1


# ----------------------------------------------------------------------------------------------

cdef int by_number(const void* a, const void* b) noexcept nogil:
    cdef uint32_t x = (<const uint32_t*>a)[0], y = (<const uint32_t*>b)[0]
    return (x > y) - (x < y)


cdef bint same_rules(object a, object b) except -1:
    """Whether two schedules have the same rules. Usually both are the same object."""
    return a is b or (a.name == b.name and a.packed() == b.packed())


cdef class BaseComparison:
    """The base on which some of the questions run, and the index of the values they read."""

    def __cinit__(self, *, bint is_own) -> None:
        self.is_own = is_own
        if not index_open(&self.state.index):
            raise MemoryError
        self.state.index.reads = question_reads

    def __dealloc__(self) -> None:
        index_close(&self.state.index)
        PyMem_RawFree(self.kept)

    @property
    def keys(self) -> int:
        """Returns the number of keys that are read."""
        return self.state.index.live

    @property
    def reads(self) -> int:
        """Returns the number of entries in the index: the reads of all questions."""
        return self.state.index.posted

    @property
    def memory(self) -> int:
        """Returns the memory of the index in bytes."""
        return index_bytes(&self.state.index)

    def move(self, layer: Layer, base: object, block_hash: bytes, environment: object) -> None:
        """Changes the base. Questions whose reads changed wait to run.

        ``base``: a view with the rules and ancestors of the block in which the questions run.
        ``environment``: the block values that they see. ``block_hash``: the hash of the base.
        """
        cdef BlockContext context
        ancestors = b"".join(base.ancestors)
        memset(&context, 0, sizeof(BlockContext))
        fill_environment(&context, environment)
        context.ancestors = <const Hash*>PyBytes_AS_STRING(ancestors)
        context.ancestor_count = <uint32_t>(PyBytes_GET_SIZE(ancestors) // sizeof(Hash))
        self.state.failed = False
        self.state.changed_keys = 0
        if self.layer is not None or self.kept != NULL:
            if (
                not same_rules(self.base.schedule, base.schedule)
                or self.context.chain_id != context.chain_id
            ):
                self.wait_for_all()
            else:
                self.compare_environment(
                    &context, ancestors,
                    self.block_hash != block_hash
                    or self.base.header != base.header or self.ancestors != ancestors
                    or self.base.next_block != base.next_block or self.layer is not layer
                    or self.base.config is not base.config,
                )
                self.compare(layer, &context, ancestors)
        if self.state.failed:
            self.wait_for_all()
        PyMem_RawFree(self.kept)
        self.kept = NULL
        self.layer, self.base, self.block_hash = layer, base, block_hash
        self.context = context
        self.ancestors = ancestors

    cdef int compare_environment(
        self, const BlockContext* context, object ancestors, bint is_other_block
    ) except -1:
        cdef Address nobody
        memset(&nobody, 0, sizeof(Address))
        with nogil:
            if is_other_block:
                key_changed(
                    &self.state, index_find(&self.state.index, READ_BASE, &nobody, NULL)
                )
            compare_contexts(&self.state, &self.context, context)
        return 0

    cdef int compare(self, Layer layer, const BlockContext* context, object ancestors) except -1:
        cdef Layer old = self.layer
        if old is layer:
            return 0
        if old is not None and old.remote_state is None and layer.remote_state is None:
            with nogil:
                map_differences(
                    old.accounts, layer.accounts, &ACCOUNT_MAP, account_differs, &self.state
                )
            return 0
        if old is not None and old.remote_state is not layer.remote_state:
            return self.wait_for_all()
        memset(&self.before, 0, sizeof(Reader))
        memset(&self.after, 0, sizeof(Reader))
        if old is not None:
            old.attach(&self.before)
        layer.attach(&self.after)
        resolved(layer, self.compare_values)
        return 0

    def compare_values(self) -> None:
        """Compares the values of all keys. May run again after a remote state fetched values."""
        with nogil:
            compare_values(&self.state, &self.before, self.kept, &self.after)

    cdef int wait_for_all(self) except -1:
        """Queues every question of this comparison."""
        cdef QuestionList* questions = self.state.questions
        cdef uint32_t i
        for i in range(questions.count):
            if questions.items[i] != NULL and (questions.items[i].block_choice == NEXT_BLOCK) != self.is_own:
                if not question_list_wait(questions, i):
                    raise MemoryError
        self.state.failed = False
        return 0

    # ------------------------------------------------------------------------------------------
    # pickling

    cdef tuple reads_of(self, const Reads* reads):
        """Returns the reads of a question: `Read` records as bytes, and its range of block hashes.
        """
        cdef const Key* key
        cdef Read read
        cdef uint32_t i
        found = []
        for i in range(reads.count + reads.threshold_count):
            key = key_at(&self.state.index, reads.keys[i])
            memset(&read, 0, sizeof(Read))
            read.address, read.kind = key.address, key.kind
            word_copy(&read.word, &key.word)
            if i >= reads.count:
                word_copy(&read.word, &reads.thresholds[i - reads.count])
            found.append((<const char*>&read)[:sizeof(Read)])
        return b"".join(found), reads.oldest_hash, reads.newest_hash

    def saved(self) -> tuple[object, ...] | None:
        """Returns the value of every key, and the block; None without a base."""
        cdef const Key* key
        cdef Read read
        cdef KeptValue kept
        cdef uint32_t i
        if self.base is None:
            return None
        if self.layer is not None:
            memset(&self.after, 0, sizeof(Reader))
            self.layer.attach(&self.after)
        values = []
        for i in range(self.state.index.key_count):
            key = key_at(&self.state.index, i)
            if key.count == 0:
                continue
            memset(&read, 0, sizeof(Read))
            memset(&kept, 0, sizeof(KeptValue))
            read.address, read.kind = key.address, key.kind
            word_copy(&read.word, &key.word)
            if self.layer is None:
                kept = self.kept[i]
            elif key.kind <= READ_SLOT:
                value_of(&self.after, key, &kept)
            values.append((
                (<const char*>&read)[:sizeof(Read)], (<const char*>&kept)[:sizeof(KeptValue)]
            ))
        context = (<const char*>&self.context)[:sizeof(BlockContext)]
        return values, context, self.ancestors, self.block_hash, replace(self.base, layer=None)

    def restore(self, saved: tuple | None) -> None:
        """Restores saved values, which replace a base. The questions must be registered before."""
        cdef const Read* read
        cdef uint32_t at
        cdef bytes ancestors
        if saved is None:
            return
        values, context, ancestors, self.block_hash, self.base = saved
        self.ancestors = ancestors
        memcpy(&self.context, PyBytes_AS_STRING(context), sizeof(BlockContext))
        self.context.ancestors = <const Hash*>PyBytes_AS_STRING(ancestors)
        self.kept = <KeptValue*>PyMem_RawCalloc(
            self.state.index.key_count + 1, sizeof(KeptValue)
        )
        if self.kept == NULL:
            raise MemoryError
        for record, value in values:
            read = <const Read*>PyBytes_AS_STRING(record)
            at = index_find(&self.state.index, read.kind, &read.address, &read.word)
            if at != NO_KEY:
                memcpy(&self.kept[at], PyBytes_AS_STRING(value), sizeof(KeptValue))

    # ------------------------------------------------------------------------------------------
    # reads of questions

    cdef void forget(self, const Reads* reads) noexcept nogil:
        """Removes a question from the index. Its record must no longer have these reads."""
        cdef uint32_t i
        if reads == NULL:
            return
        for i in range(reads.count + reads.threshold_count):
            index_remove(&self.state.index, reads.keys[i])

    cdef void keep_reads(self, const Reads* reads) noexcept nogil:
        """Raises the thresholds of the question's keys again.

        The comparison lowered them while the question waited to run.
        """
        cdef Key* key
        cdef uint32_t i
        for i in range(reads.threshold_count):
            key = key_at(&self.state.index, reads.keys[reads.count + i])
            if word_lt(&key.word, &reads.thresholds[i]):
                word_copy(&key.word, &reads.thresholds[i])

    cdef bint register(self, uint32_t position, Outcome* out) noexcept nogil:
        cdef Question* q = self.state.questions.items[position]
        cdef Reads* old = q.reads
        cdef Reads* made
        cdef const Read* read
        cdef Key* key
        cdef uint32_t i, at, exact = 0, thresholds = 0
        cdef size_t size
        cdef bint ok = True
        for i in range(out.read_count):
            if is_threshold(out.reads[i].kind):
                thresholds += 1
        exact = out.read_count - thresholds
        size = (
            sizeof(Reads) + <size_t>thresholds * sizeof(Word)
            + <size_t>out.read_count * sizeof(uint32_t)
        )
        made = <Reads*>PyMem_RawMalloc(size)
        if made == NULL:
            return False
        memset(made, 0, sizeof(Reads))
        made.fingerprint[0] = out.fingerprint[0]
        made.fingerprint[1] = out.fingerprint[1]
        made.oldest_hash = out.oldest_hash
        made.newest_hash = out.newest_hash
        made.thresholds = <Word*>(<uint8_t*>made + sizeof(Reads))
        made.keys = <uint32_t*>(<uint8_t*>made + sizeof(Reads) + thresholds * sizeof(Word))
        for i in range(out.read_count):
            read = &out.reads[i]
            at = index_key(&self.state.index, read)
            ok = at != NO_KEY
            # Add the question, unless the list has an entry from its last execution.
            ok = ok and (reads_contain(old, at) or index_add(&self.state.index, at, position))
            if not ok:
                break
            if is_threshold(read.kind):
                key = key_at(&self.state.index, at)
                if word_lt(&key.word, &read.word):
                    word_copy(&key.word, &read.word)
                word_copy(&made.thresholds[made.threshold_count], &read.word)
                made.keys[exact + made.threshold_count] = at
                made.threshold_count += 1
            else:
                made.keys[made.count] = at
                made.count += 1
        if not ok:
            # The added entries stay as ghosts: the question has no reads and must run again.
            q.reads = NULL
            for i in range(made.count):
                if not reads_contain(old, made.keys[i]):
                    index_remove(&self.state.index, made.keys[i])
            for i in range(made.threshold_count):
                if not reads_contain(old, made.keys[exact + i]):
                    index_remove(&self.state.index, made.keys[exact + i])
            PyMem_RawFree(made)
            self.forget(old)
            PyMem_RawFree(old)
            return False
        qsort(made.keys, made.count, sizeof(uint32_t), by_number)
        q.reads = made
        if old != NULL:
            for i in range(old.count + old.threshold_count):
                if not reads_contain(made, old.keys[i]):
                    index_remove(&self.state.index, old.keys[i])
            PyMem_RawFree(old)
        return True
