# The inverted index of a watch. A key is something that can be read: an account's field, a slot, a
# member of the block environment. The index maps a key to the questions that read it, so that a
# change of the base finds its questions without a search. A key takes 80 bytes and 4 to 8 in the
# table; each of its questions takes 4 more.
#
# A question that stops reading a key stays in the key's list as a ghost, because removing it would
# need a search. Code that walks the list calls `reads` to recognise ghosts. A list with more ghosts
# than other entries is cleaned.
from libc.stdint cimport uint32_t, uint64_t

from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport Word


cdef enum:
    NO_KEY = 0xffffffff
    INLINE_IDS = 2


cdef enum ReadKind:
    READ_ACCOUNT = 0      # existence, emptiness, code, whether nonce and storage are empty
    READ_NONCE = 1        # the exact nonce
    READ_BALANCE = 2      # the exact balance
    READ_FUNDS = 3        # the balance is at least `word`
    READ_SLOT = 4         # the slot `word`
    READ_ENVIRONMENT = 5  # the block value that `word`, a bit of EnvironmentRead, names
    READ_GAS_LIMIT = 6    # the gas limit of the block is at least `word`
    READ_BASE = 7         # the base as a whole: its header or its state
    # For a member that code only compares: it is at least `word`, or at most UINT64_MAX - `word`.
    READ_TIMESTAMP_MIN = 8
    READ_TIMESTAMP_MAX = 9
    READ_NUMBER_MIN = 10
    READ_NUMBER_MAX = 11
    READ_BASE_FEE_MIN = 12
    READ_BASE_FEE_MAX = 13


# A read of an execution. `word` is part of the key only for slots and the environment.
cdef struct Read:
    Address address       # zero if the read is not of an account
    uint32_t kind
    Word word


cdef union Ids:
    uint32_t* many
    uint32_t few[INLINE_IDS]


cdef struct Key:
    Address address
    uint32_t kind
    Word word             # for a threshold: the highest of all questions that do not wait
    uint32_t next         # the next key in its bucket, or in the list of free keys
    uint32_t count        # entries of the list, including ghosts
    uint32_t ghosts
    uint32_t capacity     # 0: the ids are inline
    Ids ids


cdef struct ReadIndex:
    Key* keys
    uint32_t key_count    # keys in the array, including free keys
    uint32_t key_capacity
    uint32_t live         # keys with questions
    uint32_t free         # first free key, NO_KEY: none
    uint32_t* buckets
    uint32_t bucket_mask
    uint64_t seed
    uint64_t posted       # entries of all lists, including ghosts
    uint64_t list_bytes
    # Whether the question reads the key.
    bint (*reads)(void* context, uint32_t question, uint32_t key) noexcept nogil
    void* context


cdef bint index_open(ReadIndex* index) noexcept nogil          # False if out of memory
cdef void index_close(ReadIndex* index) noexcept nogil
cdef uint64_t index_bytes(const ReadIndex* index) noexcept nogil
# Returns the position of a key, or NO_KEY if no question reads it.
cdef uint32_t index_find(
    const ReadIndex* index, uint32_t kind, const Address* address, const Word* word
) noexcept nogil
# Returns the position of a read's key, which is created if it is new. NO_KEY if memory is
# exhausted.
cdef uint32_t index_key(ReadIndex* index, const Read* read) noexcept nogil
# Adds a question to the list of a key. Returns False if memory is exhausted.
cdef bint index_add(ReadIndex* index, uint32_t key, uint32_t question) noexcept nogil
# Call it when a question has stopped reading the key. `reads` must already return False for it.
cdef void index_remove(ReadIndex* index, uint32_t key) noexcept nogil


cdef inline const uint32_t* key_questions(const Key* key) noexcept nogil:
    return key.ids.many if key.capacity else &key.ids.few[0]


cdef inline Key* key_at(const ReadIndex* index, uint32_t key) noexcept nogil:
    return &index.keys[key]


cdef inline bint is_threshold(uint32_t kind) noexcept nogil:
    return kind == READ_FUNDS or kind == READ_GAS_LIMIT or kind >= READ_TIMESTAMP_MIN
