# The state of a block of another node, read through a cache of known values.
from libc.stdint cimport uint64_t

from fastevm.core.primitives.hashes cimport Address, Hash
from fastevm.core.primitives.persistent_map cimport MapNode
from fastevm.core.primitives.word cimport Word
from fastevm.core.state.code cimport Code
from fastevm.core.state.remote_cache cimport KnownAccount, KnownEntry, KnownKey, KnownState
from fastevm.core.state.reader cimport AccountData, ReadStatus


# The base of a Reader: local changes, their tombstones, and the remote state below.
cdef struct RemoteBase:
    const MapNode* accounts
    const MapNode* masks
    KnownState* known
    uint64_t block_number     # hashes of later blocks do not come from the remote state
    bint suspends             # a miss returns READ_MISSING; otherwise it is recorded and guessed
    void* resolver            # the RemoteState if it asks its source on every miss, else NULL


cdef ReadStatus read_remote_account(
    const void* base, const Address* address, AccountData* out
) noexcept nogil
cdef ReadStatus read_remote_slot(
    const void* base, const void* storage, const Address* address, const Word* key, Word* out
) noexcept nogil
cdef ReadStatus read_remote_block_hash(
    const void* base, uint64_t number, Hash* out
) noexcept nogil


cdef bint read_remote_code(
    const void* base, const Address* address, const Code* code
) noexcept nogil


cdef class RemoteState:
    cdef KnownState* known
    cdef readonly object source
    cdef readonly size_t limit
    cdef readonly bint resolves        # asks the source on every miss: see `RemoteState`
    cdef readonly object failure
    cdef readonly uint64_t rounds      # number of requests to the source so far
    cdef uint64_t block_number
    cdef object changed        # condition variable: signals the end of a fetch
    cdef size_t fetching, fetches
    cdef dict codes            # code bytes -> address of the Code

    cdef const KnownAccount* account(self, const Address* address) except? NULL
    cdef int slot(self, const Address* address, const Word* key, Word* out) except -1
    cdef const KnownEntry* entry(self, const KnownKey* key) except? NULL
    cdef Code* code(self, bytes data, bytes unknown) except? NULL
    cdef void ask(self, const KnownKey* key) noexcept
    cdef bint open_code(self, const Address* address, const Code* code) noexcept
    cdef bint resolve(self, const KnownKey* key) noexcept
    cdef int check(self, wanted, found) except -1
    cdef int await_fetch(self) except -1
    cdef bint misses_nothing(self, size_t before) except -1
    cpdef fetch_missing(self, calls=*)
