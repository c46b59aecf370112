# A chunk of bundles as plain C data: what simulate_many runs without the GIL.
from libc.stdint cimport uint8_t, uint64_t

from fastevm.execution.outcome cimport TxError, TxResult
from fastevm.execution.tx cimport Tx
from fastevm.interpreter.machine cimport BlockContext, PrecompileMove
from fastevm.primitives.arena cimport Arena
from fastevm.primitives.hashes cimport Address
from fastevm.primitives.word cimport Word
from fastevm.spec.schedule cimport ForkSchedule
from fastevm.state.code cimport Code
from fastevm.state.world cimport World


cdef enum Fate:
    RUN_HERE = 0          # one block of calls on the common state
    RUN_APART = 1         # several blocks, or a block unlike the next: the simulated chain does it
    REFUSED = 2           # it cannot be read; `Jobs.faults` says why


# A growing array of one kind of item.
cdef struct List:
    void* items
    size_t count
    size_t capacity


cdef struct SlotJob:
    Word key
    Word value


cdef struct OverrideJob:
    Address address
    bint has_balance
    bint has_nonce
    bint has_code
    bint sets_slots       # even to nothing: the account exists then
    bint resets           # all slots of before are dropped
    Word balance
    uint64_t nonce
    Code* code            # a reference of the job's own; NULL = no code
    size_t first_slot
    size_t slot_count


cdef struct CallJob:
    Tx tx
    bint default_nonce
    bint default_gas


cdef struct BundleJob:
    Fate fate
    bint validation
    bint trace_transfers
    bint has_context      # `context` is its own, else the common one counts
    size_t context
    size_t first_call
    size_t call_count
    size_t first_override
    size_t override_count
    size_t first_move
    size_t move_count


cdef class Jobs:
    """Owner of the jobs of one chunk; emptied and filled again."""
    cdef List bundles
    cdef List calls
    cdef List overrides
    cdef List slots
    cdef List moves
    cdef List contexts
    cdef Arena* arena             # decoded call data
    cdef list kept                # objects whose memory the jobs point into
    cdef dict faults              # position of a bundle -> the exception that refuses it
    cdef object base              # the view that the bundles stand on, under their block's rules
    cdef bytes ancestors          # concatenated; the contexts point into it
    cdef ForkSchedule schedule
    cdef BlockContext common      # the block that the bundles are, unless they override it
    cdef uint64_t chain_id
    cdef bint legacy              # the fork knows no fee caps

    cdef int clear(self) except -1
    cdef int add(self, object payload) except -1
    cdef int read(self, BundleJob* bundle, object payload) except -1
    cdef int read_flags(self, BundleJob* bundle, dict payload) except -1
    cdef int read_block(self, BundleJob* bundle, object entry) except -1
    cdef int read_calls(self, BundleJob* bundle, object calls) except -1
    cdef int read_call(self, object call) except -1
    cdef int read_json(self, CallJob* job, dict call) except -1
    cdef int read_prices(self, CallJob* job, object price, object cap, object tip) except -1
    cdef int read_lists(self, CallJob* job, object request) except -1
    cdef int read_data(self, Tx* tx, object value) except -1
    cdef int read_overrides(self, BundleJob* bundle, object overrides) except -1
    cdef int read_context(self, BundleJob* bundle, object overrides) except -1


# A zeroed item at the end. The first: NULL when memory is exhausted.
cdef void* list_add(List* list, size_t item_size) noexcept nogil
cdef void* list_next(List* list, size_t item_size) except NULL
# Give a call its nonce and its gas: what it asks for or what the block has `left`, at most what the
# request's `budget` has. TX_BLOCK_GAS, with both numbers in `result`: it asks for more than is
# left.
cdef TxError call_fill(
    World* w, CallJob* job, uint64_t left, uint64_t budget, bint* capped, TxResult* result
) noexcept nogil
# Change the accounts as the jobs say, outside of any transaction. False: out of memory.
cdef bint overrides_apply(
    World* w, const OverrideJob* jobs, size_t count, const SlotJob* slots
) noexcept nogil

cdef BundleJob* bundle_at(Jobs jobs, size_t index) noexcept nogil
cdef CallJob* call_at(Jobs jobs, size_t index) noexcept nogil
